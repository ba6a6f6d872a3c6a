"""The verdicts on requirements, as results, pages and exit statuses name them."""

from __future__ import annotations

# Requirements on an estimate.
PASS = "PASS"
FAIL = "FAIL"

# Requirements on waves over time.
ALARM = "ALARM"
NO_ALARM = "NO ALARM"

# Either kind: the labels do not decide, or no wave is tested yet because all are part of the reference.
UNDECIDED = "UNDECIDED"
