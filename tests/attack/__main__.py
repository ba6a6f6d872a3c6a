"""`make attack`: every attack in full, seeded; `python -m tests.attack SHARE` makes SHARE of the tries."""

from __future__ import annotations

import sys
import time

from tests.attack.adversarial import slow_texts
from tests.attack.answers import valid_commands
from tests.attack.arguments import mistyped
from tests.attack.commands import odd_commands
from tests.attack.concurrency import writing_together
from tests.attack.damage import damaged_packed, damaged_samples, damaged_studies, damaged_texts
from tests.attack.estimates import fuzzed
from tests.attack.received import received
from tests.attack.stops import kills, pairs

ATTACKS = {
    mistyped: 20_000,
    odd_commands: 1000,
    valid_commands: 1000,
    damaged_samples: 4000,
    damaged_packed: 1000,
    damaged_texts: 1000,
    damaged_studies: 1000,
    kills: 500,
    pairs: 100,
    writing_together: 264,
    received: 20,
    slow_texts: 60,
    fuzzed: 500_000,
}
"""The attacks, and how many tries each makes in full."""


def main(share: float, seed: int) -> int:
    """Run them all; 1 if anything was silently wrong or ended in a traceback."""
    bad = 0
    for attack, tries in ATTACKS.items():
        start = time.monotonic()
        found = attack(max(1, round(tries * share)), seed)
        bad += len(found.wrong) + len(found.tracebacks)
        print(f"{attack.__name__}: {found} ({time.monotonic() - start:.0f} s)", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    )
