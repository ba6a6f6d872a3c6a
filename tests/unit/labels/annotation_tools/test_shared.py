"""What all tools share."""

from __future__ import annotations

import pytest

from stratal.errors import InputError
from stratal.labels.annotation_tools import (
    ToolAnswer,
    column_slugs,
    is_chat,
    latest_answers,
    parse_timestamp,
)


def test_names_become_slugs_that_differ():
    found = column_slugs(["Ä", "ä", "2 b", "verdict", "a", "a_2"])

    assert len(set(found.values())) == 6
    assert all(slug.isidentifier() and slug.islower() for slug in found.values())
    assert "verdict" not in found.values()


def test_a_chat_is_a_list_of_turns():
    turn = {"role": "user", "content": "Hi"}

    assert is_chat([turn])
    assert not is_chat([turn, "Hi"])
    assert not is_chat([{"role": "user"}])
    assert not is_chat([])


def test_the_same_answer_twice_is_one():
    assert len(latest_answers([ToolAnswer(id="a", value="x"), ToolAnswer(id="a", value="x")])) == 1


@pytest.mark.parametrize("times", [("", ""), ("2026-01-01", ""), ("2026-01-01", "2026-01-01")])
def test_two_answers_without_an_order_are_refused(times):
    first, second = (ToolAnswer(id="a", value=v, timestamp=t) for v, t in zip("xy", times, strict=True))

    with pytest.raises(InputError, match="item 'a' has two answers"):
        latest_answers([first, second])


@pytest.mark.parametrize("text", ["253402300800000", "500000000000000", "1e300", "nan", "-5", "soon"])
def test_times_that_no_date_can_have_are_unknown(text):
    assert parse_timestamp(text) is None
