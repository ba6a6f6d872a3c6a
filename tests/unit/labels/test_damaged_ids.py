"""Ids that a spreadsheet changed: matched where only one unit can be meant, never guessed."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import LabelError
from stratal.labels.spreadsheet_ids import restore_spreadsheet_ids


@pytest.mark.parametrize(
    ("damaged", "whole"),
    [
        ("415", "0415"),
        ("1336.0", "1336"),
        (" 7 ", "007"),
        ("1.23457E+11", "123456789012"),
        ("1.23456789012346e+23", "123456789012345678901234"),
        ("1.00E+03", "1e3"),
        ("2026-03-01 00:00:00", "2026-03-01"),
        ("2026-03-01T00:00:00", "2026-03-01"),
    ],
)
def test_a_damaged_id_finds_its_unit(damaged, whole):
    ids, notes = restore_spreadsheet_ids([damaged], None, {whole, "other", "99"})

    assert ids == (whole,)
    assert repr(damaged) in notes[0]


@pytest.mark.parametrize(
    ("damaged", "known"),
    [
        ("415", {"0415", "00415"}),
        ("1.23E+05", {"123000", "123456"}),
        ("1.5", {"15", "01.5"}),
        ("-7", {"007"}),
        ("abc", {"0abc"}),
    ],
)
def test_nothing_is_guessed(damaged, known):
    assert restore_spreadsheet_ids([damaged], None, known) == ((damaged,), ())


def test_a_unit_that_has_its_own_label_is_not_given_another():
    assert restore_spreadsheet_ids(["0415", "415"], None, {"0415"})[0] == ("0415", "415")
    assert restore_spreadsheet_ids(["0415", "415"], ["ann", "bob"], {"0415"})[0] == ("0415", "0415")


def test_labels_of_damaged_ids_are_joined_and_it_is_said():
    names = ["0415", "0007", "x"]
    population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=names)
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=1)

    found = stratal.estimate(sample, {"415": 1, 7.0: 1, "x": 0})

    assert np.isclose(found.value, 2 / 3)
    assert any("2 ids were matched although a spreadsheet had changed them" in note for note in found.notes)


def test_an_id_that_could_be_two_units_stays_an_error():
    population = stratal.Population.from_arrays(proxy=[0.1, 0.5], ids=["0415", "00415"])
    sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=1)

    with pytest.raises(LabelError, match=r"first: '415'.*format their column as text"):
        stratal.estimate(sample, {"415": 1})
