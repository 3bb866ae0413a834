# Coverage of R's 95 % intervals for the same clustered samples with open answers, for comparison with tables.py and
# unforeseen.py:  Rscript experiments/surveys/coverage/twin.R [surveys]   (needs r-cran-survey)
suppressMessages(library(survey))
set.seed(1)
surveys <- as.integer(c(commandArgs(TRUE), 600)[1])
truth <- c(.005, .015, .05, .225, .13)

dirichlet <- function(a) { g <- rgamma(length(a), a); g / sum(g) }

covered <- function(title, sizes, concentration) {
  law <- c(truth, 1 - sum(truth))
  village <- rep(seq_along(sizes), sizes)
  hits <- matrix(0, 3, 5, dimnames = list(c("svymean", "svyciprop beta", "svyciprop logit"), truth))
  for (i in seq_len(surveys)) {
    answers <- unlist(lapply(sizes, function(m) sample(6, m, TRUE, dirichlet(concentration * law))))
    data <- data.frame(village = village)
    for (j in 1:5) data[[paste0("a", j)]] <- as.numeric(answers == j)
    design <- svydesign(~village, weights = ~1, data = data)
    ends <- confint(svymean(~a1 + a2 + a3 + a4 + a5, design), df = degf(design))
    hits[1, ] <- hits[1, ] + (ends[, 1] <= truth & truth <= ends[, 2])
    for (j in 1:5) {
      if (!any(answers == j)) next # svyciprop has no interval for an answer that nobody gave
      for (m in 1:2) {
        ci <- attr(svyciprop(as.formula(paste0("~a", j)), design, method = c("beta", "logit")[m], df = degf(design)), "ci")
        hits[1 + m, j] <- hits[1 + m, j] + (ci[1] <= truth[j] & truth[j] <= ci[2])
      }
    }
  }
  cat(title, "\n")
  print(round(hits / surveys, 3))
}

covered("60 villages of 14 respondents that differ", rep(14, 60), 60)
covered("one village of 580 respondents and 29 of 20, which differ", c(580, rep(20, 29)), 20)
