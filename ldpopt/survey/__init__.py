"""Surveys: plan the questions, privatize the answers, count the reports, estimate with honest intervals."""
