"""The attacks of `make attack`, short: nothing silently wrong, no traceback."""

from __future__ import annotations

import pytest
from tests.attack.adversarial import slow_texts
from tests.attack.answers import valid_commands
from tests.attack.arguments import mistyped
from tests.attack.commands import odd_commands
from tests.attack.concurrency import writing_together
from tests.attack.damage import damaged_packed, damaged_samples, damaged_studies, damaged_texts
from tests.attack.estimates import fuzzed
from tests.attack.received import SCENES, received
from tests.attack.stops import kills, pairs
from tests.tiers import sized

SHORT = {
    mistyped: sized(100, 300),
    odd_commands: sized(20, 40),
    damaged_samples: sized(50, 270),
    damaged_packed: sized(20, 80),
    damaged_texts: sized(15, 60),
    damaged_studies: sized(4, 60),
    kills: sized(2, 27),
    pairs: sized(1, 4),
    writing_together: sized(2, 66),
    received: sized(8, len(SCENES)),
    slow_texts: sized(1, 5),
}


@pytest.mark.parametrize("attack", SHORT, ids=lambda attack: attack.__name__)
def test_nothing_is_silently_wrong_and_nothing_ends_in_a_traceback(attack):
    found = attack(SHORT[attack], seed=1)

    assert found.tries >= SHORT[attack]
    assert found.wrong == []
    assert found.tracebacks == []


def test_fuzzed_calls_are_finite_or_refused():
    tries = sized(200, 3_000)
    found = fuzzed(tries, seed=2)

    assert found.tries >= tries
    assert 0 < found.refused < found.tries / 2
    assert found.wrong == []
    assert found.tracebacks == []


def test_valid_commands_print_what_the_library_answers():
    tries = sized(9, 36)
    found = valid_commands(tries, seed=3)

    assert found.tries >= tries
    assert found.refused == 0
    assert found.wrong == []
    assert found.tracebacks == []
