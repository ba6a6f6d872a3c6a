"""The description of a proxy without its values, inferred from its range and the declarations."""

from __future__ import annotations

from dataclasses import dataclass

from stratal.errors import InputError
from stratal.question.scores import ANSWER_IS_RIGHT, ORDER, OUTCOME, Score, rating

# The squares of larger proxies and labels would overflow in sums.
MAX_PROXY = 1e100


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyInfo:
    """Description of one proxy without its values.

    Parameters
    ----------
    name : str
        Column name.
    scaled : bool
        Whether it predicts the outcome on the scale of the outcome. Another proxy only orders units: it may
        define strata, and an estimator may use it only with a fitted λ.
    bounds : (float, float), optional
        Bounds of the outcome that it predicts; (0, 1) for a probability.
    second_moment : str, optional
        Column of the expected square of the outcome. Without it, the outcome is assumed to have the largest
        variance that its bounds allow (binary for (0, 1)).

    Examples
    --------
    >>> ProxyInfo(name="confidence").bounds
    (0.0, 1.0)
    """

    name: str
    scaled: bool = True
    bounds: tuple[float, float] | None = (0.0, 1.0)
    second_moment: str | None = None

    def score(self, answer: str | None) -> Score:
        """Return the quantity that the proxy predicts, inferred from its scale.

        If there is a column `answer` of the model's answers, a proxy with the bounds 0 and 1 is assumed to be
        the probability that the answer is right. A proxy with other bounds is a rating.
        """
        predicts = OUTCOME
        if not self.scaled:
            predicts = ORDER
        elif answer is not None and self.bounds == (0.0, 1.0):
            predicts = ANSWER_IS_RIGHT
        elif self.bounds not in (None, (0.0, 1.0)):
            predicts = rating(*self.bounds)
        return Score(name=self.name, predicts=predicts)


def infer_proxy_info(
    name: str,
    low: float,
    high: float,
    bounds: tuple[float, float] | None,
    scaled: bool | None,
    second_moment: str | None = None,
    label_bounds: tuple[float, float] | None = None,
) -> ProxyInfo:
    """Return the description of a proxy, inferred from its range and the declarations.

    Parameters
    ----------
    name : str
    low, high : float
        Smallest and largest value of the proxy.
    bounds : (float, float), optional
        Declared bounds of the outcome that the proxy predicts.
    scaled : bool, optional
        Declaration that the proxy is, or is not, on the scale of the outcome.
    second_moment : str, optional
        As in `ProxyInfo`.
    label_bounds : (float, float), optional
        Declared bounds of the labels. A proxy on another scale only orders units.

    Raises an `InputError` if values lie outside the declared bounds.
    """
    outcome_bounds = label_bounds or bounds
    if scaled is None and outcome_bounds is not None and _is_on_another_scale(low, high, outcome_bounds):
        return ProxyInfo(name=name, scaled=False, bounds=outcome_bounds)
    if max(abs(low), abs(high)) > MAX_PROXY:
        problem = f"proxy '{name}' is too large to be squared"
        allowed = f"up to {MAX_PROXY:g} in size"
        raise InputError(problem, given=f"{low:g} to {high:g}", allowed=allowed, action="Rescale it.")
    # A proxy with declared bounds that are not those of the labels predicts another quantity.
    predicts_other_quantity = label_bounds is not None and bounds not in (None, label_bounds)
    exceeds_labels = label_bounds is not None and bounds is None and not _is_within(low, high, label_bounds)
    if scaled is False or predicts_other_quantity or exceeds_labels:
        return ProxyInfo(name=name, scaled=False, bounds=outcome_bounds)
    if outcome_bounds is not None:
        _require_within_bounds(name, low, high, outcome_bounds)
        return ProxyInfo(name=name, scaled=True, bounds=outcome_bounds, second_moment=second_moment)
    if _is_within(low, high, (0.0, 1.0)):
        return ProxyInfo(name=name, scaled=True, bounds=(0.0, 1.0), second_moment=second_moment)
    return ProxyInfo(name=name, scaled=bool(scaled), bounds=None, second_moment=second_moment)


def _is_within(low: float, high: float, bounds: tuple[float, float]) -> bool:
    """Return whether values from `low` to `high` lie within the bounds."""
    return low >= bounds[0] and high <= bounds[1]


def _require_within_bounds(name: str, low: float, high: float, bounds: tuple[float, float]) -> None:
    """Raise an error if bounds do not increase, or if values from `low` to `high` lie outside them."""
    if not bounds[0] < bounds[1]:
        allowed = "(lowest, highest), such as (0, 1)"
        raise InputError("bounds must be increasing", given=bounds, allowed=allowed)
    if not _is_within(low, high, bounds):
        action = "Correct the bounds, or declare that the proxy only orders units (scaled=False, --margin)."
        raise InputError(
            f"proxy '{name}' has values outside the bounds",
            given=f"{low:g} to {high:g}",
            allowed=f"{bounds[0]:g} to {bounds[1]:g}",
            action=action,
        )


# If all values of a proxy are in the lowest tenth of the range of the labels, the proxy has another scale,
# such as 0 to 1 for labels from 0 to 100.
_LOWEST_RANGE_SHARE = 0.1


def _is_on_another_scale(low: float, high: float, bounds: tuple[float, float]) -> bool:
    """Return whether values from `low` to `high` are on another scale than labels within the bounds.

    Values from 0 to 1, such as probabilities, are on another scale than labels from 0 to 5.
    """
    if bounds == (0.0, 1.0) or low < bounds[0]:
        return False
    is_probability_for_wider_labels = bounds[0] <= 0.0 <= low and high <= 1.0 < bounds[1]
    lowest_range_end = bounds[0] + _LOWEST_RANGE_SHARE * (bounds[1] - bounds[0])
    return is_probability_for_wider_labels or high <= lowest_range_end
