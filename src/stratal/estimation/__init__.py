"""Labels to estimates: resolved labels, λ, linearised functions, means and domains, `Estimate`."""

# Registers the mean. The other kinds of estimand are imported when one of them is requested.
import stratal.estimation.means  # noqa: F401
from stratal.estimation.estimand import as_estimand, parts_of, planned_for

__all__ = ["as_estimand", "parts_of", "planned_for"]
