"""Codes of missing labels by the distribution of the other labels."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from stratal.labels.suspected_codes import suspected_codes
from stratal.question.code_numbers import is_code

RNG = np.random.default_rng(20261129)


def drawn(low, high, size=95):
    return RNG.integers(low, high + 1, size).tolist()


def rounded(values, digits=2):
    return np.round(values, digits).tolist()


def count_labels(labels, codes=None):
    counts = dict(Counter(labels))
    counts.update(codes or {})
    return counts


def counted(**count_of):
    """Return labels such as 2 × 0 and 3 × -1 of `_0=2, m1=3`."""
    labels = []
    for name, count in count_of.items():
        labels += [int(name.replace("m", "-").strip("_"))] * count
    return labels


STARS = [1, 2, 3, 4, 5] * 19
FIVE_POINTS = [-2, -1, 0, 1, 2] * 19
SEVEN_POINTS = [-3, -2, -1, 0, 1, 2, 3] * 14
RECOMMENDATIONS = [*range(11)] * 9
BINARY = [0] * 60 + [1] * 35
PREFERENCES = [-1] * 30 + [0] * 30 + [1] * 35
PERCENTAGES = [*range(101)]
TENS = [10 * number for number in range(11)] * 9
CONFIDENCES = [50, 60, 70, 80, 90, 95] * 15
LATENCIES = drawn(100, 3000)
COUNTS = drawn(0, 300)
RARE_EVENTS = RNG.poisson(2, 95).tolist()
LONG_TAIL = RNG.negative_binomial(0.3, 0.02, 150).tolist()
EUROS = rounded(np.exp(RNG.normal(5, 1, 95)))
TEMPERATURES = drawn(-10, 35, 200)
SCORES = rounded(RNG.random(95), 3)
STANDARDISED = rounded(RNG.normal(size=95), 3)
AGES = drawn(18, 85)
YEARS = drawn(1990, 2024)
PRICES = [9, 19, 29, 39, 49, 59, 79, 89, 99, 129, 149, 199, 249, 299] * 6
PRICES_WITH_CENTS = [0.99, 1.99, 4.99, 9.99, 19.99, 49.99, 9, 19, 29, 49, 99, 199, 499, 999] * 6
MOSTLY_ZERO = [0] * 70 + drawn(1, 60, 30)

CODED = {
    "stars, 99": (STARS, {99: 5}),
    "stars, one 99": (STARS, {99: 1}),
    "stars, one 97": (STARS, {97: 1}),
    "stars, 77": (STARS, {77: 5}),
    "stars, 97, 98 and 99": (STARS, {97: 1, 98: 1, 99: 1}),
    "stars, 996 to 999": (STARS, {996: 1, 997: 1, 998: 1, 999: 1}),
    "stars, 77 and 99": (STARS, {77: 1, 99: 1}),
    "stars, -7 and 99": (STARS, {-7: 1, 99: 1}),
    "stars, -7 and -8": (STARS, {-7: 3, -8: 2}),
    "stars, -2": (STARS, {-2: 5}),
    "stars, one -1": (STARS, {-1: 1}),
    "stars, -99999": (STARS, {-99999: 5}),
    "stars, 9": (STARS, {9: 5}),
    "stars, 8 and 9": (STARS, {8: 1, 9: 2}),
    "stars to 7, 9": ([1, 2, 3, 4, 5, 6, 7] * 14, {9: 5}),
    "five points, 99": (FIVE_POINTS, {99: 5}),
    "five points, one 999": (FIVE_POINTS, {999: 1}),
    "five points, 9": (FIVE_POINTS, {9: 5}),
    "five points, -9": (FIVE_POINTS, {-9: 5}),
    "five points, -99": (FIVE_POINTS, {-99: 5}),
    "seven points, 999": (SEVEN_POINTS, {999: 5}),
    "preferences, 99": (PREFERENCES, {99: 5}),
    "preferences, -9": (PREFERENCES, {-9: 5}),
    "0 to 10, -1": (RECOMMENDATIONS, {-1: 5}),
    "0 to 10, 88 and 99": (RECOMMENDATIONS, {88: 3, 99: 2}),
    "0 to 9, 99": (drawn(0, 9), {99: 5}),
    "0 and 1, 9 in a fifth": ([0] * 50 + [1] * 30, {9: 20}),
    "0 and 1, 8": (BINARY, {8: 5}),
    "0 and 1, -1": (BINARY, {-1: 5}),
    "0 and 1, mostly -1": (BINARY, {-1: 900}),
    "1, 99": ([1] * 90, {99: 10}),
    "halves, -1": (rounded(RNG.integers(2, 11, 95) / 2), {-1: 5}),
    "quarters, 9": (rounded(RNG.integers(0, 13, 95) / 4), {9: 5}),
    "tens, 999": (TENS, {999: 5}),
    "tens, -1": (TENS, {-1: 5}),
    "percentages, -1": (PERCENTAGES, {-1: 5}),
    "percentages, -99": (PERCENTAGES, {-99: 5}),
    "percentages, one 999": (PERCENTAGES, {999: 1}),
    "percentages and a typing error, 999": ([*PERCENTAGES, 101], {999: 2, 998: 3}),
    "decimal percentages, -9": (rounded(RNG.random(95) * 100, 1), {-9: 5}),
    "150 to 250, -999": (drawn(150, 250), {-999: 5}),
    "150 to 250, 9999": (drawn(150, 250), {9999: 5}),
    "150 to 250, 99": (drawn(150, 250), {99: 5}),
    "101 to 106, -1": (drawn(101, 106), {-1: 5}),
    "counts, 999": (COUNTS, {999: 5}),
    "counts, -1": (COUNTS, {-1: 5}),
    "counts, one -99": (COUNTS, {-99: 1}),
    "rare events, 99": (RARE_EVENTS, {99: 5}),
    "mostly zero, -1": (MOSTLY_ZERO, {-1: 5}),
    "long tail, 9999": (LONG_TAIL, {9999: 5}),
    "latencies, -1": (LATENCIES, {-1: 5}),
    "latencies, -999": (LATENCIES, {-999: 5}),
    "latencies, 9999": (LATENCIES, {9999: 5}),
    "latencies, one 99999": (LATENCIES, {99999: 1}),
    "prices, -999": (EUROS, {-999: 5}),
    "temperatures, -99": (TEMPERATURES, {-99: 5}),
    "temperatures, 999": (TEMPERATURES, {999: 5}),
    "scores, -1": (SCORES, {-1: 5}),
    "scores, one -1": (SCORES, {-1: 1}),
    "scores, 9": (SCORES, {9: 5}),
    "scores, one 99": (SCORES, {99: 1}),
    "standardised, one -99": (STANDARDISED, {-99: 1}),
    "standardised, 999": (STANDARDISED, {999: 5}),
    "ages, 99": (AGES, {99: 5}),
    "ages, one 999": (AGES, {999: 1}),
    "ages, -1": (AGES, {-1: 4}),
    "tens of latencies, one -1": ([10 * number for number in drawn(10, 300, 20)], {-1: 1}),
    "percentages in steps of 5, -1": ([5 * number for number in range(21)] * 20, {-1: 8}),
    "salaries, one -9": (drawn(20_000, 90_000, 30), {-9: 1}),
    "latencies, one -1": (drawn(100, 3000, 30), {-1: 1}),
    "prices that end in 9, -1": (PRICES_WITH_CENTS, {-1: 2}),
    "prices that end in 9, 9999": (PRICES, {9999: 3}),
    "seven points, -9 in a fifth": (SEVEN_POINTS, {-9: 25}),
    "years, one 9999": (YEARS, {9999: 1}),
    "years, 99": (YEARS, {99: 3}),
    "years, one -1": (YEARS, {-1: 1}),
    "only 99": ([], {99: 50}),
    "only -1": ([], {-1: 50}),
}

UNCODED = {
    "stars": STARS,
    "stars and one 9": [*STARS, 9],
    "five points": FIVE_POINTS,
    "five points, few below": counted(m2=4, m1=10, _0=30, _1=36, _2=20),
    "seven points": SEVEN_POINTS,
    "preferences": PREFERENCES,
    "preferences, an eighth losses": counted(m1=12, _0=38, _1=50),
    "wins and losses": [-1, 1] * 50,
    "sentiments, one in twenty negative": counted(m1=5, _1=95),
    "0 and 1": BINARY,
    "0 to 10": RECOMMENDATIONS,
    "8 to 10": counted(_8=30, _9=50, _10=20),
    "8 and 9": counted(_8=30, _9=50),
    "0 and 8 to 10": counted(_0=3, _8=30, _9=50, _10=17),
    "6, 7 and 9": [6] * 20 + [7] * 20 + [9] * 2,
    "98 and 99": [98, 99] * 20,
    "percentages": PERCENTAGES,
    "percentages, 90 to 100": drawn(90, 100),
    "percentages, 88 to 99": drawn(88, 99),
    "five points, mostly below": counted(m2=46, m1=23, _0=15, _1=10, _2=6),
    "classes without 7": [0, 1, 2, 3, 4, 5, 6, 8, 9] * 12,
    "a price of 999": [9, 19, 29, 49, 99, 199] * 6 + [999],
    "common percentages": counted(_0=5, _50=10, _88=10, _98=10, _99=10, _100=30),
    "percentages, mostly zero": [*MOSTLY_ZERO, 77, 88, 97, 99],
    "zero, and a few large percentages": counted(_0=80, _5=3, _12=2, _40=2, _66=3, _80=3, _99=2),
    "confidences": [*CONFIDENCES, *[99] * 10],
    "tens and 99": [*TENS, *[99] * 6],
    "counts, one 8": counted(_0=70, _1=29, _8=1),
    "counts, one 9": counted(_0=70, _1=20, _2=9, _9=1),
    "counts, one 88": counted(_0=70, _1=20, _2=9, _3=3, _88=1),
    "counts, one 99": counted(_0=60, _1=30, _2=12, _3=6, _5=2, _11=1, _99=1),
    "rare events": RARE_EVENTS,
    "counts to 300": COUNTS,
    "long tail": LONG_TAIL,
    "long tail, one 999": [*(number for number in LONG_TAIL if number < 300), 999],
    "long tail of ten values": [1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 9, 11, 14, 18, 25, 37, 80, 999],
    "latencies": LATENCIES,
    "latencies, one of 9999": [*LATENCIES, 9999],
    "log-normal latencies": np.exp(RNG.normal(5, 1.5, 300)).round().tolist(),
    "euros": EUROS,
    "prices": PRICES,
    "prices and 999": [*PRICES, *[999] * 5],
    "temperatures": TEMPERATURES,
    "temperatures, hardly negative": drawn(-2, 35, 200),
    "changes of a rating": RNG.integers(-4, 5, 200).tolist(),
    "standardised": STANDARDISED,
    "scores": SCORES,
    "scores from -1 to 1": rounded(2 * RNG.random(95) - 1),
    "whole numbers from -1": [*range(-1, 31)],
    "ages": AGES,
    "ages, one 99": [*AGES, 99],
    "years": YEARS,
    "years to 1999": drawn(1970, 1999),
    "classes 0 to 9": [*range(10)] * 10,
    "classes 0 to 99": [*range(100)] * 3,
    "9 to 20": drawn(9, 20),
    "all 9": [9] * 50,
    "all 1": [1] * 50,
    "two labels": [-1, 5000],
    "30 and 99": [1, 30, 99],
}


@pytest.mark.parametrize("name", CODED)
def test_codes_apart_from_the_other_labels_are_suspected(name):
    labels, codes = CODED[name]

    assert suspected_codes(count_labels(labels, codes)) == sorted(codes)


@pytest.mark.parametrize("name", UNCODED)
def test_labels_of_one_distribution_are_not_suspected(name):
    assert suspected_codes(count_labels(UNCODED[name])) == []


@pytest.mark.parametrize("shift", [0, 1000])
@pytest.mark.parametrize("scale", [1, 3])
def test_repeated_codes_do_not_depend_on_the_place_and_the_unit_of_the_other_labels(shift, scale):
    """A label above 100 or below 0 switched the check off for all others."""
    rest = [shift + scale * number for number in SEVEN_POINTS]

    assert suspected_codes(count_labels(rest, {9999: 5, -9999: 5})) == [-9999, 9999]


def test_digits_of_codes():
    codes = (-1, -2, -7, -8, -9, 8, 9, 77, 88, 96, 97, 98, 99, 996, 999, -99, -99999, 7777)
    labels = (0, 1, 7, -3, -6, 10, 11, 66, 79, 90, 100, 101, 899, 990, 99.5, float("nan"), float("inf"))

    assert all(map(is_code, codes))
    assert not any(map(is_code, labels))
