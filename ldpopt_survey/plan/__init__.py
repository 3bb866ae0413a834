"""Planning a survey: the questions, the number of respondents, the privacy budget and the channels."""
