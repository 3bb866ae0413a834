"""The kit: a questionnaire for browsers that draws reports on the respondent's own device, and the same in Python."""
