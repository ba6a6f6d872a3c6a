# Reference values of R's survey for weights, strata and clusters together, and for calibrated weights.
# Run: Rscript tests/reference/generate_survey.R > tests/reference/survey.json
suppressMessages(library(survey))
n <- 48
i <- 0:(n - 1)
d <- data.frame(
  unit = i,
  st = paste0("s", i %% 3),
  cl = paste0("c", (i %/% 3) %% 5),
  w = 5 + (7 * i) %% 11,
  y = as.numeric((i * i + 3 * i) %% 7 < 4),
  v = ((13 * i) %% 17) / 4,
  a = paste0("a", (i * i) %% 3),
  b = paste0("b", (i %/% 2) %% 2),
  x = ((5 * i) %% 12) / 3
)
number <- function(x) sprintf("%.15g", as.numeric(x))
entry <- function(name, design, extra = "") {
  y <- svymean(~y, design); v <- svymean(~v, design)
  cat(sprintf('  "%s": {"y": [%s, %s], "v": [%s, %s]%s}', name,
    number(coef(y)), number(SE(y)), number(coef(v)), number(SE(v)), extra))
}
cat(sprintf('{\n  "source": "R %s.%s, survey %s",\n', R.version$major, R.version$minor, packageVersion("survey")))
full <- svydesign(ids = ~cl, strata = ~st, weights = ~w, nest = TRUE, data = d)
entry("strata, clusters and weights", full, sprintf(', "degf": %d', degf(full))); cat(",\n")
entry("clusters and weights", svydesign(ids = ~cl, weights = ~w, data = d)); cat(",\n")
entry("strata and weights", svydesign(ids = ~1, strata = ~st, weights = ~w, data = d)); cat(",\n")
options(survey.lonely.psu = "adjust")
d$lone <- ifelse(d$st == "s2", "c0", d$cl)
entry("a lonely cluster", svydesign(ids = ~lone, strata = ~st, weights = ~w, nest = TRUE, data = d)); cat(",\n")
simple <- transform(d, N = 480, sw = 480 / n)
one <- svydesign(ids = ~1, fpc = ~N, weights = ~sw, data = simple)
size <- c(s0 = 100, s1 = 160, s2 = 220)
strat <- transform(d, N = size[st], sw = size[st] / 16)
by <- svydesign(ids = ~1, strata = ~st, fpc = ~N, weights = ~sw, data = strat)
margins <- list(a = data.frame(a = c("a0", "a1"), Freq = c(180, 300)), b = data.frame(b = c("b0", "b1"), Freq = c(260, 220)))
totals <- c(`(Intercept)` = 480, aa1 = 300, bb1 = 220)
for (name in c("simple", "stratified")) {
  design <- if (name == "simple") one else by
  entry(paste(name, "linear"), calibrate(design, ~ a + b, totals)); cat(",\n")
  entry(paste(name, "raking"), calibrate(design, ~ a + b, totals, calfun = "raking", epsilon = 1e-12, maxit = 200)); cat(",\n")
  entry(paste(name, "linear with a number"), calibrate(design, ~ a + b + x, c(totals, x = 900))); cat(",\n")
}
k <- 480 / sum(d$w)
entry("strata, clusters and weights, linear", calibrate(full, ~ a + b, c(`(Intercept)` = sum(d$w), aa1 = sum(d$w) * 300 / 480, bb1 = sum(d$w) * 220 / 480))); cat(",\n")
entry("strata, clusters and weights, raking", calibrate(full, ~ a + b, c(`(Intercept)` = sum(d$w), aa1 = sum(d$w) * 300 / 480, bb1 = sum(d$w) * 220 / 480), calfun = "raking", epsilon = 1e-12, maxit = 200))
cat("\n}\n")
