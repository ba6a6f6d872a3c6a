"""`compare`: models on the same labels, with the differences of all pairs, ratios, win rates and ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.errors import InputError, names_mistyped, near_names
from stratal.estimation.columns import number_columns
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates, in_family, title_of
from stratal.estimation.model_pairs import ModelPair, bounds_of_outcomes
from stratal.estimation.respondents import Respondents
from stratal.report import Intervals, Page, leaderboard_table, noted
from stratal.sampling.asked import require_sample
from stratal.sampling.sample import Sample


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparisons(Estimates):
    """The differences of models, their means, ratios and win rates.

    Parameters
    ----------
    means : tuple of Estimate (k,)
        Of the models, their label `model`.
    ratios, win_rates : tuple of Estimate (m,)
        Of the pairs, in the order of the differences.
    ties : tuple of float (m,)
        Share of the labelled units on which both outcomes are the same.
    """

    means: tuple[Estimate, ...] = ()
    ratios: tuple[Estimate, ...] = ()
    win_rates: tuple[Estimate, ...] = ()
    ties: tuple[float, ...] = ()

    def rows(self, confidence_level: float = 0.95) -> list[dict[str, Any]]:
        """Return a plain dict for each pair, with its ratio and win rate."""
        found = Estimates.rows(self, confidence_level)
        for row, rate, ties in zip(found, self.win_rates, self.ties, strict=True):
            row["win_rate"] = _shown(rate, confidence_level) | {"ties": ties}
        for row, ratio in zip(found, self.ratios, strict=False):
            known = np.isfinite(ratio.value) and ratio.limits(confidence_level) is not None
            row["ratio"] = _shown(ratio, confidence_level) if known else None
        return found

    def ranks(self, confidence_level: float = 0.95) -> dict[str, tuple[int, int]]:
        """Return the ranks of each model that the intervals of all differences leave open.

        Raises
        ------
        InputError
            If not all pairs were compared.
        """
        names = list(dict.fromkeys(str(name) for row in self for name in row.label.values()))
        if len(self) != len(names) * (len(names) - 1) // 2:
            raise InputError("ranks need the differences of all pairs", action="Leave reference= out.")
        better, worse = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
        for row in self:
            low, high = row.limits(confidence_level) or (None, None)
            a, b = str(row.label["a"]), str(row.label["b"])
            first_better = low is not None and low > 0
            if first_better or (high is not None and high < 0):
                best, worst = (a, b) if first_better else (b, a)
                better[worst] += 1
                worse[best] += 1
        return {name: (1 + better[name], len(names) - worse[name]) for name in names}

    def leaderboard(self, confidence_level: float = 0.95) -> list[dict[str, Any]]:
        """Return the models from the best, each with its mean, rank and difference to the best.

        Empty where the means are not known: labels of units that two models answer alike tell of neither.
        """
        if not self.means:
            return []
        k = len(self.means)
        ranks = self.ranks(confidence_level) if len(self) == k * (k - 1) // 2 else {}
        order = sorted(self.means, key=lambda mean: -mean.value)
        best = str(order[0].label["model"])
        to_best: dict[str, tuple[float, list[float | None] | None]] = {}
        for row in self:
            a, b = str(row.label["a"]), str(row.label["b"])
            ends = row.limits(confidence_level) if best in (a, b) else None
            if b == best:
                to_best[a] = row.value, ends
            if a == best:
                turned = None if ends is None else [None if end is None else -end for end in reversed(ends)]
                to_best[b] = -row.value, turned
        found = []
        for mean in order:
            name = str(mean.label["model"])
            difference, ends = to_best.get(name, (None, None))
            found.append(
                {
                    "rank": list(ranks[name]) if ranks else None,
                    "model": name,
                    "mean": mean.value,
                    "confidence_interval": mean.limits(confidence_level),
                    "to_best": difference,
                    "to_best_interval": ends,
                }
            )
        return found

    def to_dict(self, confidence_level: float = 0.95) -> dict[str, Any]:
        """Return a JSON-ready dict."""
        board = self.leaderboard(confidence_level)
        return Estimates.to_dict(self, confidence_level) | ({"leaderboard": board} if board else {})

    def page(self, confidence_level: float = 0.95) -> Page:
        """Return what is printed."""
        board = self.leaderboard(confidence_level)
        first = [leaderboard_table(board, confidence_level)] if board else []
        return Page(tables=[*first, self.table(confidence_level)], notes=noted(self.notes))

    def _plot(self) -> Intervals:
        if not self.means:
            return Estimates._plot(self)
        return Intervals(
            title=self.title,
            x_label="mean outcome",
            rows=[(row["model"], row["mean"], row["confidence_interval"]) for row in self.leaderboard()],
            confidence_level=0.95,
        )


@names_mistyped
def compare(
    sample: Sample,
    outcomes: Mapping[str, Any],
    *,
    reference: str | None = None,
    proxies: Mapping[str, str] | None = None,
    simultaneous: bool = True,
    bounds: tuple[float, float] | None = None,
    target: str = "population",
    seed: int = 0,
) -> Comparisons:
    """Compare models by their outcomes on the same labelled units.

    Parameters
    ----------
    sample : Sample
    outcomes : mapping of str
        Of each model's name to its outcomes: labels by id, an array in the order of `sample.ids`, or a
        dataframe of one column per model. Units that lack some model's outcome are left out.
    reference : str, optional
        Compare each model with this one; all pairs unless given.
    proxies : mapping of str, optional
        Of a model's name to the sample's proxy that predicts its outcome: the difference is then that of
        both, with a fitted λ (PPI++), where there are 50 labels or more.
    simultaneous : bool
        Intervals and p-values hold together for all pairs (max-t), unless False.
    bounds : (float, float), optional
        Of the outcomes.
    target : {"population", "superpopulation"}
    seed : int
        Of the largest statistic's simulated distribution.

    Returns
    -------
    Comparisons
        An `Estimate` for each pair, labelled `a` and `b`; level and alternative of intervals and p-values are
        chosen afterwards. `ranks()`, `leaderboard()`, `means`, `ratios`, `win_rates` besides.

    Raises
    ------
    InputError
        For fewer than two models, an unknown reference, model or proxy.
    LabelError
        If no unit has an outcome of every model.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 50)
    >>> sample = stratal.SimpleRandom(budget=5).draw(population, seed=7)
    >>> found = stratal.compare(sample, {"new": [1, 1, 0, 1, 1], "old": [1, 0, 0, 1, 0]})
    >>> found[0].value, found.ranks()
    (0.4, {'new': (1, 2), 'old': (1, 2)})
    """
    require_sample(sample, "compare")
    outcomes = _by_model(outcomes)
    names = list(outcomes)
    z, labelled = number_columns(sample, outcomes, "no unit has an outcome of every model", "such unit")
    frame = Respondents.of(sample, labelled)
    found = comparisons(
        sample,
        frame,
        labelled,
        z,
        names=names,
        pairs=_pairs(names, reference),
        slopes=_proxies(sample, names, proxies),
        bounds=bounds_of_outcomes(sample, z) if bounds is None else bounds,
        target=target,
        simultaneous=simultaneous,
        seed=seed,
    )
    missing = sample.size - len(z)
    if not missing:
        return found
    note = f"{missing:,} of {sample.size:,} drawn units lack the outcome of some model"
    return replace(found, remarks=(*found.remarks, note))


def comparisons(
    sample: Sample,
    frame: Respondents,
    labelled: BoolArray,
    z: FloatArray,
    *,
    names: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    slopes: FloatArray | None,
    bounds: tuple[float, float] | None,
    target: str = "population",
    simultaneous: bool = True,
    seed: int = 0,
) -> Comparisons:
    """Return the comparisons of models by their outcomes z (m, k) on the labelled units.

    `slopes` (k, p) are what of each proxy predicts each model's outcome.
    """
    both = [
        ModelPair(
            sample=sample,
            frame=frame,
            labelled=labelled,
            first=z[:, a],
            second=z[:, b],
            models=(names[a], names[b]),
            target=target,
            bounds=bounds,
            slopes=None if slopes is None else slopes[[a, b]],
        )
        for a, b in pairs
    ]
    differences = [
        replace(pair.difference(), label=dict(zip("ab", pair.models, strict=True))) for pair in both
    ]
    together = ", simultaneous" if simultaneous and len(pairs) > 1 else ""
    whole = frame.share == 1.0
    columns = zip(names, z.T, strict=True) if whole and not both[0].alone else ()
    refused = bounds is None and any(found.limits() is None for found in differences)
    means = [replace(both[0].mean(column), label={"model": name}) for name, column in columns]
    return Comparisons(
        estimates=in_family(differences, seed) if simultaneous else tuple(differences),
        kind="comparisons",
        title=title_of(sample, len(z), target, ", paired", together),
        remarks=(*frame.notes, *([_ALIKE] if refused else [])),
        means=tuple(means),
        ratios=tuple(replace(pair, slopes=None).ratio() for pair in both) if whole else (),
        win_rates=tuple(replace(pair, slopes=None).win_rate() for pair in both),
        ties=tuple(float(np.mean(pair.first == pair.second)) for pair in both),
    )


_ALIKE = "outcomes without bounds that always differ alike give no interval: give bounds="


def _shown(found: Estimate, confidence_level: float) -> dict[str, Any]:
    """Return what a pair's row shows of its ratio or win rate."""
    row = found.row(confidence_level)
    return {name: row[name] for name in ("estimate", "standard_error", "confidence_interval")}


def _by_model(outcomes: Any) -> dict[str, Any]:
    if not (isinstance(outcomes, Mapping) or (hasattr(outcomes, "columns") and hasattr(outcomes, "items"))):
        raise InputError(
            "outcomes must be a mapping of model name to outcomes",
            given=type(outcomes).__name__,
            action="Give {'model_a': labels_a, 'model_b': labels_b}.",
        )
    found = dict(outcomes.items())
    if len(found) < 2:
        raise InputError("a comparison needs two models", given=len(found), allowed="2 or more")
    return found


def _pairs(names: list[str], reference: str | None) -> list[tuple[int, int]]:
    if reference is None:
        return list(combinations(range(len(names)), 2))
    if reference not in names:
        raise InputError(f"no such model: {reference!r}", allowed=near_names(reference, names))
    base = names.index(reference)
    return [(j, base) for j in range(len(names)) if j != base]


def _proxies(sample: Sample, names: list[str], proxies: Mapping[str, str] | None) -> FloatArray | None:
    """Return what of the sample's proxies predicts each model's outcome (k, p)."""
    for model, proxy in (proxies or {}).items():
        if model not in names:
            raise InputError(f"no such model: {model!r}", allowed=near_names(model, names))
        if proxy not in sample.proxy_names:
            raise InputError(f"no such proxy: {proxy!r}", allowed=near_names(proxy, sample.proxy_names))
    if not proxies:
        return None
    return np.array([[float(proxies.get(name) == proxy) for proxy in sample.proxy_names] for name in names])
