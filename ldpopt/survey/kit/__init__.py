"""Reports drawn on the respondent's own device: a questionnaire for browsers, and the same in Python."""
