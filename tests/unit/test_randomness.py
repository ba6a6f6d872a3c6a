from __future__ import annotations

import hashlib
from uuid import UUID

import numpy as np
import pytest

from stratal import randomness
from stratal.errors import InputError
from stratal.randomness import (
    KEY_DIGITS,
    check_seed,
    id_array,
    id_text,
    id_texts,
    keys_of_ids,
    keys_of_rows,
    shown_order,
    thresholds,
    uniforms,
)

PHILOX_7 = [16086915834549238692, 5448529601018347655]
"""Raw output of NumPy's Philox with key 7, as NumPy 2.4 gave it."""


def test_one_id_whatever_its_type():
    assert {id_text(value) for value in (7, 7.0, "7", np.int8(7), np.float32(7), np.str_("7"))} == {"7"}
    name = UUID("12345678-1234-5678-1234-567812345678")
    assert id_text(name) == str(name)


@pytest.mark.parametrize("value", [None, float("nan"), 1.5, 2.0**60, b"7", True, [1]])
def test_what_cannot_be_an_id(value):
    with pytest.raises(InputError, match="id"):
        id_text(value)


def test_long_and_padded_numbers_stay_text():
    ids = id_array(["123456789012345678901234", "007"])

    assert id_texts(ids) == ["123456789012345678901234", "007"]


def test_large_integers_survive():
    assert id_texts(id_array([2**63 - 1, 5])) == [str(2**63 - 1), "5"]
    assert id_texts(id_array(np.array([2**64 - 1], dtype=np.uint64))) == [str(2**64 - 1)]


def test_a_key_is_the_head_of_the_digest():
    expected = int(hashlib.md5("7:ü".encode()).hexdigest()[:16], 16)

    assert keys_of_ids(["ü"], 7).tolist() == [expected]


def test_row_keys_do_not_depend_on_how_many_there_are():
    few, many = keys_of_rows(slice(0, 100), 7), keys_of_rows(slice(0, 200_000), 7)

    assert len(many) == 200_000
    assert few.tolist() == many[:100].tolist()


def test_row_keys_are_those_of_this_generator_forever():
    keys = keys_of_rows(slice(0, 2), 7)

    assert keys.tolist() == np.random.Philox(key=7).random_raw(2).tolist() == PHILOX_7


def test_uniforms_lie_in_the_unit_interval_and_are_even():
    u = uniforms(keys_of_ids(map(str, range(20_000)), 1))

    assert 0 <= u.min() < u.max() < 1
    assert abs(u.mean() - 0.5) < 4 / np.sqrt(12 * 20_000)


def test_units_whose_digests_are_alike_are_shown_in_the_order_of_their_ids(monkeypatch):
    monkeypatch.setattr(randomness, "keys_of_ids", lambda texts, *_: np.array([5, 3, 5], np.uint64))

    assert shown_order(np.array(["b", "c", "a"]), 7).tolist() == [1, 2, 0]


def test_digests_are_those_of_openssl():
    texts = ["a", "", "7", "ü", "x" * 1000]
    by_hashlib = [hashlib.md5(f"3:{text}".encode()).hexdigest()[:KEY_DIGITS] for text in texts]

    assert [format(key, "016x") for key in keys_of_ids(texts, 3).tolist()] == by_hashlib


def test_the_shown_order_is_independent_of_the_draw():
    ids = np.array([f"u{i}" for i in range(2000)])
    rank = np.argsort(np.argsort(keys_of_ids(ids.tolist(), 3)))
    shown = np.argsort(shown_order(ids, 3))

    assert abs(np.corrcoef(rank, shown)[0, 1]) < 4 / np.sqrt(2000)


def test_thresholds_widen():
    narrow, wide = (int(thresholds(np.array([5]), np.array([10_000]), step)[0]) for step in (0, 3))

    assert narrow < wide <= 2**64 - 1


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, "7", None, True])
def test_seeds_that_are_none(seed):
    with pytest.raises(InputError, match="whole number"):
        check_seed(seed)


@pytest.mark.parametrize("ids", [["a", "a\0"], np.array(["a\0b"]), np.array(["a", "a\0"], dtype=object)])
def test_ids_with_nul_are_refused(ids):
    with pytest.raises(InputError, match="NUL"):
        id_array(ids)


@pytest.mark.parametrize(
    "ids",
    [np.array(["2024-01-01"], "datetime64[ns]"), np.array([1], "timedelta64[s]"), np.array([1j])],
)
def test_dates_and_complex_numbers_are_no_ids(ids):
    with pytest.raises(InputError, match="unsupported type"):
        id_array(ids)


def test_masked_ids_are_missing():
    with pytest.raises(InputError, match="masked"):
        id_array(np.ma.masked_array([1, 2], [True, False]))


def test_ids_that_no_file_can_hold_are_refused():
    with pytest.raises(InputError, match=r"an id contains a lone surrogate, .*given: 'a\\ud83d'"):
        keys_of_ids(["a\ud83d"], seed=7)
