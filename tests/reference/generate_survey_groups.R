# Reference values of R's survey for means of groups in few clusters: value, error, degrees of freedom.
# Run: Rscript tests/reference/generate_survey_groups.R > tests/reference/survey_groups.json
suppressMessages(library(survey))
n <- 60
i <- 0:(n - 1)
d <- data.frame(
  unit = i,
  cl = paste0("c", i %/% 5),
  uneven = paste0("c", floor(sqrt(2 * i))),
  st = paste0("s", (i %/% 5) %% 3),
  w = 50, wu = 5 + (7 * i) %% 11,
  v = 10 + ((13 * i) %% 17) / 4 + (i %/% 5) %% 4,
  y = as.numeric((11 * i * i + 3 * i) %% 13 < 7)
)
d$lang <- ifelse(i %/% 5 %in% c(0, 7), "da", ifelse(i %/% 5 %in% c(2, 3, 9), "sv", "en"))
d$mixed <- ifelse((i * 7) %% 11 < 2 & i < 30, "a", "b")
d$N <- 240
d$clusters <- 48
number <- function(x) sprintf("%.15g", as.numeric(x))
first <- TRUE
entry <- function(name, design, group, level) {
  own <- subset(design, design$variables[[group]] == level)
  for (value in c("v", "y")) {
    m <- svymean(as.formula(paste0("~", value)), own)
    df <- degf(own)
    ends <- confint(m, df = df)
    cat(sprintf('%s\n    {"design": "%s", "group": "%s", "level": "%s", "value": "%s", "mean": %s, "se": %s, "df": %d, "low": %s, "high": %s}',
      if (first) "" else ",", name, group, level, value, number(coef(m)), number(SE(m)), df, number(ends[1]), number(ends[2])))
    first <<- FALSE
  }
}
cat(sprintf('{\n  "source": "R %s.%s, survey %s, %s",\n  "rows": [', R.version$major, R.version$minor, packageVersion("survey"), Sys.Date()))
weights <- svydesign(ids = ~cl, weights = ~w, data = d)
unequal <- svydesign(ids = ~cl, weights = ~wu, data = d)
strata <- svydesign(ids = ~cl, strata = ~st, weights = ~w, nest = TRUE, data = d)
both <- svydesign(ids = ~cl, strata = ~st, weights = ~wu, nest = TRUE, data = d)
uneven <- svydesign(ids = ~uneven, weights = ~wu, data = d)
units <- svydesign(ids = ~1, weights = ~wu, data = d)
units_in_strata <- svydesign(ids = ~1, strata = ~st, weights = ~wu, data = d)
drawn <- svydesign(ids = ~cl, fpc = ~clusters, data = transform(d, p = 1), weights = rep(4, n))
for (level in c("da", "sv", "en")) {
  entry("weights, clusters", weights, "lang", level)
  entry("unequal weights, clusters", unequal, "lang", level)
  entry("whole clusters", drawn, "lang", level)
}
entry("weights, strata, clusters", strata, "lang", "en")
entry("unequal weights, strata, clusters", both, "lang", "en")
entry("weights, strata, clusters", strata, "mixed", "b")
entry("unequal weights, strata, clusters", both, "mixed", "b")
for (level in c("a", "b")) {
  entry("unequal weights, uneven clusters", uneven, "mixed", level)
  entry("unequal weights, units", units, "mixed", level)
  entry("unequal weights, units in strata", units_in_strata, "mixed", level)
}
cat("\n  ]\n}\n")
