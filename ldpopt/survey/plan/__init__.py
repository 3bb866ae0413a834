"""Before a survey: what is asked, of whom, at which epsilon, through which channels."""
