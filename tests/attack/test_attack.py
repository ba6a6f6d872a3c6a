"""The attacks of `make attack`, short: nothing silently wrong, no traceback."""

from __future__ import annotations

import pytest
from tests.attack.answers import valid_commands
from tests.attack.arguments import mistyped
from tests.attack.commands import odd_commands
from tests.attack.damage import damaged_packed, damaged_samples, damaged_studies, damaged_texts
from tests.attack.estimates import fuzzed
from tests.attack.stops import kills, pairs

SHORT = {
    mistyped: 300,
    odd_commands: 40,
    damaged_samples: 270,
    damaged_packed: 80,
    damaged_texts: 60,
    damaged_studies: 60,
    kills: 27,
    pairs: 4,
}


@pytest.mark.parametrize("attack", SHORT, ids=lambda attack: attack.__name__)
def test_nothing_is_silently_wrong_and_nothing_ends_in_a_traceback(attack):
    found = attack(SHORT[attack], seed=1)

    assert found.tries >= SHORT[attack]
    assert found.wrong == []
    assert found.tracebacks == []


def test_fuzzed_calls_are_finite_or_refused():
    found = fuzzed(3_000, seed=2)

    assert found.tries >= 3_000
    assert 0 < found.refused < found.tries / 2
    assert found.wrong == []
    assert found.tracebacks == []


def test_valid_commands_print_what_the_library_answers():
    found = valid_commands(36, seed=3)

    assert found.tries >= 36
    assert found.refused == 0
    assert found.wrong == []
    assert found.tracebacks == []
