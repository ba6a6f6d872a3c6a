"""Labels to estimates: λ, the estimands, intervals of their own where the mean's do not apply, domains."""

# The mean, which everything else is asked instead of; other kinds enter when one of them is asked for.
import stratal.estimation.estimands.means  # noqa: F401
from stratal.estimation.estimand import as_estimand

__all__ = ["as_estimand"]
