"""Labels that are probably codes of missing labels: outliers from the distribution of the other labels.

A code is a whole number of typical digits, such as -1, -8, 88, 99, 997 or -9999 (`is_code`). Only the lowest
and the highest labels are examined: a number with others on both sides is a label. The other labels are *the
rest*. They are *ratings* if at most eleven are different, as on the widest usual scale, 0 to 10, and
otherwise *measurements*.

A negative code below a rest without negative labels is suspected

- among ratings, unless -1, or -2 and -1, belong to the scale (`_scale_size_below_zero`); -1 does not if the
  labels state whether answers are right;
- among measurements if they are decimals, or whole numbers that are mostly 5 or more apart or have a common
  factor that the code lacks; if it occurs at least three times, and either more than twice as often as the
  other labels on average or next to a rest of which 0 is the most frequent label; or if the gap to the rest
  is as large as its range, or twice the largest gap in the lower half of its values.

Every other code must be *repeated* or *far*:

- A code is repeated if it occurs at least three times (among ratings, different codes count together) but not
  more often than the rest, and if the gap is at least twice the largest gap inside the rest, or four times if
  only two labels are different. The gap must also be improbable. A distribution without a second mode has at
  least as many labels at each possible value in the gap as at the code, so that the number of these values
  times the number of codes is the expected number of labels in the gap. It must be at least 5, because
  exp(-5) is the probability of none. Codes that are more than a tenth of the labels need three values, or a
  gap as large as the range of the rest.
- A code of two digits or more is far, however rare, if it is more than four times the largest rating, or if
  the gap is seven times the range of at least three different ratings, or of measurements with a short tail:
  the ratio of gap and range must exceed that of the upper and the lower half of the measurements. One or two
  codes of two digits are not far from counts, of which 0 is the most frequent.

If a third of the labels end in 9, they are prices, and codes below ten times the highest one are prices, too.

A positive code below the rest, such as 99 below years, must have fewer digits than all other labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.question.code_numbers import is_code
from stratal.question.facts import MAX_RATINGS

# Minimum number of equal codes, and minimum expected number of labels in the empty gap.
_MIN_REPEATS = 3
_MIN_EXPECTED_IN_GAP = 5.0

# Minimum gap between codes and the rest, in units of the largest gap inside the rest: for three or more
# different labels, and for two.
_MIN_INNER_GAPS = 2.0
_MIN_GAPS_OF_TWO_LABELS = 4.0
# The same in units of the range of the rest.
_MIN_RANGES = 7.0
# Minimum number of different labels for the smaller gap, for the range and for prices. The range of two
# labels is their only gap.
_MIN_DISTINCT_LABELS = 3
# Minimum ratio of a code to the largest rating.
_MIN_RATIO = 4.0

# If whole measurements are mostly at least this far apart, few have the digits of a code by chance.
_MIN_MEDIAN_GAP = 5.0

# Minimum share of decimals among different labels: a whole number below zero is then a code.
_MIN_SHARE_OF_DECIMALS = 0.25

# If repeated codes are a larger share of the labels, the gap needs three possible values, or the range of the
# rest: classes from 0 to 9 may lack 7.
_MAX_SHARE_OF_NEAR_CODES = 0.1
_MIN_VALUES_BELOW_FREQUENT_CODES = 3

# Minimum number of equal negative codes, in units of the mean number of equal labels of whole measurements.
_MIN_AVERAGE_COUNTS = 2.0

# Minimum share of negative labels that are losses or the negative half of a scale: next to 0 and 1, and next
# to 1 alone. If the share next to 0 and 1 is larger than the maximum, most are rows that nobody labelled.
_MIN_LOSS_SHARE = 0.1
_MIN_LOSS_SHARE_WITHOUT_TIES = 0.05
_MAX_LOSS_SHARE = 2 / 3
LOSS = -1.0
# Largest label of a scale from -2 to 2 or 3.
_LARGEST_VALUE_OF_FIVE_POINTS = 3.0

# Minimum share of labels that end in 9, by which they are prices.
_MIN_SHARE_OF_PRICES = 1 / 3

# A code that is at least so many times the highest price is no price.
_MIN_RATIO_TO_PRICES = 10.0


@dataclass(frozen=True, slots=True)
class LabelDistribution:
    """Distinct labels (d,), ascending, and the number of each (d,)."""

    values: FloatArray
    counts: IntArray

    @classmethod
    def of(cls, count_of: Mapping[float, int]) -> LabelDistribution:
        """Return the distinct labels of a mapping from label to count."""
        values = np.array(sorted(count_of), dtype=np.float64)
        counts = np.array([count_of[value] for value in values.tolist()], dtype=np.int64)
        return cls(values, counts)

    def part(self, start: int, stop: int) -> LabelDistribution:
        """Return the distinct labels from one position up to another, which is not included."""
        return LabelDistribution(self.values[start:stop], self.counts[start:stop])

    @property
    def mirrored(self) -> LabelDistribution:
        """The labels with the other sign."""
        return LabelDistribution(-self.values[::-1], self.counts[::-1])

    @property
    def total(self) -> int:
        """Number of labels."""
        return int(self.counts.sum())

    @property
    def lowest(self) -> float:
        """The smallest label."""
        return float(self.values[0])

    @property
    def highest(self) -> float:
        """The largest label."""
        return float(self.values[-1])

    @property
    def range(self) -> float:
        """Difference between the largest and the smallest label."""
        return self.highest - self.lowest

    @property
    def median(self) -> float:
        """The median of the labels."""
        return float(np.median(np.repeat(self.values, self.counts)))

    @property
    def mode(self) -> float:
        """The most frequent label."""
        return float(self.values[np.argmax(self.counts)])

    @property
    def are_ratings(self) -> bool:
        """Whether there are few different labels."""
        return len(self.values) <= MAX_RATINGS

    @property
    def are_decimals(self) -> bool:
        """Whether many different labels are no whole numbers."""
        return bool(np.mean(self.values % 1 != 0) >= _MIN_SHARE_OF_DECIMALS)

    @property
    def are_counts(self) -> bool:
        """Whether the labels are whole numbers from 0 to 2 or more, of which 0 is the most frequent."""
        is_whole = bool(np.all(self.values % 1 == 0))
        return is_whole and self.lowest == 0 and self.mode == 0 and self.highest > 1

    @property
    def are_prices(self) -> bool:
        """Whether many labels end in 9."""
        ends_in_nine = np.array([f"{value:.10g}".endswith("9") for value in self.values.tolist()])
        share = float(np.average(ends_in_nine, weights=self.counts))
        return len(self.values) >= _MIN_DISTINCT_LABELS and share >= _MIN_SHARE_OF_PRICES

    @property
    def largest_gap(self) -> float:
        """Largest difference between neighbouring labels; that from 0 if all labels are equal."""
        if len(self.values) == 1:
            return max(abs(self.lowest), 1.0)
        return float(np.max(np.diff(self.values)))

    @property
    def median_gap(self) -> float:
        """Median difference between neighbouring labels."""
        return float(np.median(np.diff(self.values)))

    @property
    def common_factor(self) -> int:
        """The greatest common factor of whole labels, such as 5 for 5, 15 and 20; 1 for decimals."""
        if np.any(self.values % 1 != 0):
            return 1
        return max(math.gcd(*(int(value) for value in self.values.tolist())), 1)

    @property
    def smallest_gap(self) -> float:
        """Smallest difference between neighbouring labels; 1 if all labels are equal."""
        if len(self.values) == 1:
            return 1.0
        return float(np.min(np.diff(self.values)))


def suspected_codes(count_of: Mapping[float, int], *, has_losses: bool = True) -> list[float]:
    """Return the labels that are probably codes of missing labels, ascending; see the module's docstring.

    Parameters
    ----------
    count_of : mapping of float to int
        Number of each label.
    has_losses : bool
        Whether -1 may be a loss if the other labels are ties (0) and wins (1).
    """
    labels = LabelDistribution.of(count_of)
    size = len(labels.values)
    code_mask = np.array([is_code(value) for value in labels.values.tolist()])
    if np.all(code_mask):
        return _suspected_without_others(labels)
    positive_mask = code_mask & (labels.values > 0)
    # All labels before `first_other`, and all from `after_others` on, have the digits of codes.
    first_other = int(np.argmin(code_mask))
    after_others = size - int(np.argmin(positive_mask[::-1]))
    starts = [
        start
        for start in range(after_others, size)
        if _is_separate(labels.part(start, size), labels.part(first_other, start))
    ]
    high_start = min(starts, default=size)
    scale_size = _scale_size_below_zero(
        labels.part(0, first_other), labels.part(first_other, high_start), has_losses=has_losses
    )
    ends = [
        end
        for end in range(1, first_other - scale_size + 1)
        if _is_suspected_below(labels.part(0, end), labels.part(end, high_start))
    ]
    low_end = max(ends, default=0)
    return [*labels.values[:low_end].tolist(), *labels.values[high_start:].tolist()]


def _suspected_without_others(codes: LabelDistribution) -> list[float]:
    """Return the suspected codes if all labels have the digits of codes, as the percentages 98 and 99."""
    is_one_code = len(codes.values) == 1 and codes.lowest > 10 and codes.total >= _MIN_REPEATS
    if codes.lowest < 0 or is_one_code:
        return list(codes.values.tolist())
    return []


def _scale_size_below_zero(codes: LabelDistribution, rest: LabelDistribution, *, has_losses: bool) -> int:
    """Return the number of codes next to zero that are labels of a scale: 0, 1 (-1), or 2 (-1 and -2).

    -1 is a loss if the others are ties and wins (0 and 1), or only wins (1). -2 and -1 are the lower half of
    a scale of about five points. Both must be frequent enough.
    """
    values = codes.values[codes.values < 0].tolist()
    if not values or values[-1] != LOSS or rest.lowest < 0 or np.any(rest.values % 1 != 0):
        return 0
    if values[-2:] == [LOSS - 1, LOSS]:
        size = 2
        is_scale = rest.highest <= _LARGEST_VALUE_OF_FIVE_POINTS
    else:
        size = 1
        is_scale = has_losses and rest.highest == 1
    negative_count = int(codes.counts[len(values) - size : len(values)].sum())
    share = negative_count / (negative_count + rest.total)
    has_ties = rest.lowest == 0
    min_share = _MIN_LOSS_SHARE if has_ties else _MIN_LOSS_SHARE_WITHOUT_TIES
    max_share = _MAX_LOSS_SHARE if has_ties and size == 1 else 1.0
    if is_scale and negative_count >= _MIN_REPEATS and min_share <= share <= max_share:
        return size
    return 0


def _is_suspected_below(codes: LabelDistribution, rest: LabelDistribution) -> bool:
    """Return whether the lowest labels, which have the digits of codes, are suspected to be codes."""
    if codes.highest < 0 <= rest.lowest:
        return _is_suspected_below_zero(codes, rest)
    has_fewer_digits = rest.lowest >= 10 ** len(str(int(codes.highest)))
    if codes.highest > 0 and not has_fewer_digits:
        return False
    return _is_separate(codes.mirrored, rest.mirrored)


def _is_suspected_below_zero(codes: LabelDistribution, rest: LabelDistribution) -> bool:
    """Return whether negative labels below a rest without negative labels are suspected to be codes."""
    if rest.total < 2:
        return False
    if rest.are_ratings or rest.are_decimals:
        return True
    average_count = rest.total / len(rest.values)
    code_count = codes.total / len(codes.values)
    is_frequent = code_count > _MIN_AVERAGE_COUNTS * average_count or rest.mode == 0
    if codes.total >= _MIN_REPEATS and is_frequent:
        return True
    if rest.median_gap >= _MIN_MEDIAN_GAP or np.any(codes.values % rest.common_factor != 0):
        return True
    gap = rest.lowest - codes.highest
    lower_half = rest.part(0, len(rest.values) // 2)
    return gap >= min(rest.range, _MIN_INNER_GAPS * lower_half.largest_gap)


def _is_separate(codes: LabelDistribution, rest: LabelDistribution) -> bool:
    """Return whether codes above the rest are separate from it: repeated or far."""
    return _are_repeated(codes, rest) or _are_far(codes, rest)


def _is_price(code: float, rest: LabelDistribution) -> bool:
    """Return whether a code above the rest is a price that ends in 9, as many of the rest do."""
    return rest.are_prices and code < _MIN_RATIO_TO_PRICES * rest.highest


def _are_repeated(codes: LabelDistribution, rest: LabelDistribution) -> bool:
    """Return whether codes above the rest are repeated, with a gap that is large and improbable."""
    # Next to ratings, codes may be rare each, such as 8 and 9. Different high labels next to measurements may
    # be the tail of these.
    count = codes.total if rest.are_ratings else int(codes.counts.max())
    if count < _MIN_REPEATS or codes.total > rest.total or _is_price(codes.lowest, rest):
        return False
    gap = codes.lowest - rest.highest
    values_in_gap = gap / rest.smallest_gap - 1
    is_rare = codes.total <= _MAX_SHARE_OF_NEAR_CODES * (codes.total + rest.total)
    if not is_rare and values_in_gap < _MIN_VALUES_BELOW_FREQUENT_CODES and gap < rest.range:
        return False
    is_improbable = values_in_gap * count >= _MIN_EXPECTED_IN_GAP
    min_gaps = _MIN_INNER_GAPS
    if len(rest.values) < _MIN_DISTINCT_LABELS:
        min_gaps = _MIN_GAPS_OF_TWO_LABELS
    return is_improbable and gap >= min_gaps * rest.largest_gap


def _are_far(codes: LabelDistribution, rest: LabelDistribution) -> bool:
    """Return whether codes of two digits or more are far above the rest, however rare they are."""
    if abs(codes.lowest) < 10 or _is_price(codes.lowest, rest):
        return False
    gap = codes.lowest - rest.highest
    if rest.are_ratings:
        are_two_digits = abs(codes.lowest) < 100
        if are_two_digits and codes.total < _MIN_REPEATS and rest.are_counts:
            return False
        largest = max(float(np.max(np.abs(rest.values))), 1.0)
        has_range = len(rest.values) >= _MIN_DISTINCT_LABELS
        return codes.lowest > _MIN_RATIO * largest or (has_range and gap >= _MIN_RANGES * rest.range)
    upper_tail = rest.highest - rest.median
    lower_tail = rest.median - rest.lowest
    return gap >= _MIN_RANGES * rest.range and gap * lower_tail > upper_tail * rest.range
