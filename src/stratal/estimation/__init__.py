"""Labels to estimates: λ, the estimands, intervals of their own where the mean's do not apply, domains."""

import stratal.estimation.estimands  # noqa: F401  (the kinds of estimand enter themselves)
