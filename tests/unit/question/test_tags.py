"""Sets of tags: how cells are read, and the text that stands for a set."""

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, LabelError
from stratal.question import Outcome
from stratal.question.tags import how_to_write, is_set, read_set, read_sets, set_text, tags_of_sets


@pytest.mark.parametrize(
    ("cell", "separator", "text"),
    [
        ('["b", "a"]', None, '["a", "b"]'),
        ('["a","a", "b"]', None, '["a", "b"]'),
        (" [ ] ", None, "[]"),
        (["b", "a"], None, '["a", "b"]'),
        (("a",), None, '["a"]'),
        ({"a"}, None, '["a"]'),
        (np.array(["b", "a"]), None, '["a", "b"]'),
        ([1.0, 2], None, '["1", "2"]'),
        ("[1, 2]", None, '["1", "2"]'),
        ('["a;b"]', ";", '["a;b"]'),
        ("b;a; b", ";", '["a", "b"]'),
        ("b | a", "|", '["a", "b"]'),
        ("a, b", ",", '["a", "b"]'),
        ("a", ";", '["a"]'),
        ("[]", ";", "[]"),
        ('["ä"]', None, '["ä"]'),
        ("a", None, None),
        ("[a, b]", None, None),
        ('[["a"]]', None, None),
        ('{"a": 1}', None, None),
        ("[null]", None, None),
        (1.0, None, None),
        (None, None, None),
    ],
)
def test_a_cell_is_read_as_a_set(cell, separator, text):
    assert read_set(cell, separator) == text


def test_two_cells_hold_one_set_exactly_if_their_texts_are_equal():
    assert set_text(["b", "a", "b"]) == set_text(["a", "b"]) != set_text(["a"])


def test_a_column_is_read_as_sets_if_every_cell_is_one():
    assert read_sets(['["a"]', "[]"], None) == (['["a"]', "[]"], None)
    assert read_sets(["a", "b"], None) == (None, None)
    assert read_sets(['["a"]', "b"], None) == (None, 1)
    assert read_sets(['["a"]', "b"], "none") == (None, None)
    assert read_sets(["a;b", "b"], ";") == (['["a", "b"]', '["b"]'], None)
    assert read_sets(["a", '["b"]'], "json") == (None, 0)


def test_the_vocabulary_is_that_of_all_sets():
    assert tags_of_sets(['["b", "c"]', "[]", '["a"]']) == ("a", "b", "c")
    assert [is_set(text) for text in ("[]", "x", 3.0)] == [True, False, False]


def test_an_outcome_stores_the_format_and_the_tags():
    outcome = Outcome(tag_format=";", tags=("a", "b"))

    assert outcome.holds_sets
    assert Outcome.from_dict(outcome.to_dict()) == outcome
    assert (
        outcome.label_format == how_to_write(";", ("a", "b")) == "sets of tags such as a;b, or [] for no tags"
    )
    assert not Outcome(tag_format="none").holds_sets
    assert Outcome().label_format is None


def test_an_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"given: '/'; allowed: json, none, or the separator"):
        Outcome(tag_format="/")


def test_a_tag_is_not_a_set_of_tags():
    """The labels were called unknown words."""
    population = stratal.Population.from_arrays(
        ids=range(4), groups={"answer": [["cat"], ["dog", "cat"], [], ["dog"]]}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=1)

    with pytest.raises(LabelError, match=r"the label 'cat' is a tag.*allowed: sets of tags such as"):
        stratal.estimate(sample, dict.fromkeys(range(4), "cat"))
