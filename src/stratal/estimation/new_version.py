"""The labelled sample against a new version of the model: what is known anew, and what needs labels.

Labels that are classes judge any answer. Labels that judge the old answer (right or wrong, a grade) hold for
the new one where it is the same; where it changed, the outcome is unknown between its bounds until somebody
labels it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.errors import InputError, LabelError, names_mistyped
from stratal.estimation.classes import class_text
from stratal.estimation.columns import class_column, with_group
from stratal.estimation.comparison import compare
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate
from stratal.estimation.respondents import combined, outcomes, said
from stratal.labels.labels import Labels, join
from stratal.randomness import id_texts
from stratal.report import Page, Printed, new_version_page, plain_dict
from stratal.sampling.sample import Sample

_NEW = "answer of the new version"
_CHOICES = ("estimator", "target", "outcome", "bounds")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVersion(Printed):
    """What a labelled sample says of a new version of the model.

    Parameters
    ----------
    found : dict
        Plain: `units` with an answer of the new version, `same`, `changed`, `known` (whose new outcome is
        known), `missing` (drawn units without a new answer), `complete`, `old`, `new` and `difference` (new
        less old), each with `estimate` (None unless complete), `lowest` and `highest` (what it is if every
        unknown outcome is the worst or the best) and a `confidence_interval` that holds for both; and the ids
        that `needs_labels`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(
    ...     proxy=[0.6] * 40, groups={"answer": ["cat", "dog"] * 20}, predicted="answer")
    >>> sample = stratal.SimpleRandom(budget=20).draw(population, seed=7)
    >>> new = new_version(sample, ["cat"] * 20, {unit: "cat" for unit in range(40)}, predicted=True)
    >>> new.found["new"]["estimate"], new.found["needs_labels"]
    (1.0, [])
    """

    found: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON twin."""
        return dict(self.found)

    def _page(self) -> Page:
        return new_version_page(self.found)


@names_mistyped
def new_version(
    sample: Sample,
    labels: Any,
    answers: Any,
    *,
    old_answers: Any = None,
    new_labels: Any = None,
    predicted: bool | str = False,
    combine: str = "mean",
    confidence_level: float = 0.95,
    **options: Any,
) -> NewVersion:
    """Estimate how good a new version of the model is, and how much better, from labels that are there.

    Parameters
    ----------
    sample, labels, predicted, combine
        See `stratal.estimate`.
    answers : mapping of id to answer, Labels, Series, or array in the order of `sample.ids`
        Of the new version, for the drawn units; ids that were not drawn are left out.
    old_answers : str, or as `answers`, optional
        What the labels judged: a column of the sample; its column of the model's answers unless given.
    new_labels : see `stratal.estimate`, optional
        Labels of changed answers, as far as they are there.
    confidence_level : float
    **options
        `estimator`, `target`, `outcome`, `bounds` as in `stratal.estimate`.

    Returns
    -------
    NewVersion

    Raises
    ------
    InputError
        For another option, if nothing says what the old answers were, and for an outcome without bounds whose
        new values are not all known.
    LabelError
        If no drawn unit has a new answer.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(
    ...     proxy=[0.6] * 40, groups={"answer": ["a", "b"] * 20}, predicted="answer")
    >>> sample = stratal.SimpleRandom(budget=20).draw(population, seed=7)
    >>> judged = {unit: 1.0 for unit in sample.ids.tolist()}
    >>> new = {unit: "a" for unit in range(40)}
    >>> found = new_version(sample, judged, new).to_dict()
    >>> found["complete"], found["known"] + len(found["needs_labels"])
    (False, 20)
    """
    strange = [name for name in options if name not in _CHOICES]
    if strange:
        raise InputError(f"new_version takes no {strange[0]}=", allowed=", ".join(_CHOICES))
    joined = combined(said(join(sample, labels), predicted), combine)[0]
    z = _scattered(joined.labelled, outcomes(sample, joined, predicted))
    old = estimate(sample, labels, predicted=predicted, combine=combine, **options)
    before, after = _old_answers(sample, old_answers, predicted), _answers(sample, answers)
    answered = np.array([entry is not None for entry in after], dtype=bool)
    if not np.any(answered):
        raise LabelError(
            "no drawn unit has an answer of the new version",
            allowed=f"answers by the sample's ids, such as {id_texts(sample.ids)[0]!r}",
            action="Check that the ids are those of the sample.",
        )
    same = answered & (before == after)
    if predicted:
        anew = with_group(sample, _NEW, dict(zip(id_texts(sample.ids), after, strict=True)))
        new = _scattered(joined.labelled, outcomes(anew, joined, _NEW))
    else:
        new = np.where(same, z, np.nan)
    if new_labels is not None:
        given = combined(said(join(sample, new_labels), False), combine)[0]
        told = _scattered(given.labelled, outcomes(sample, given, False))
        new = np.where(np.isfinite(told) & answered, told, new)
    new[~answered] = np.nan
    unknown = answered & np.isnan(new) & (np.isfinite(z) if not predicted else False)
    return NewVersion(
        found=plain_dict(
            {
                "units": int(answered.sum()),
                "missing": int((~answered).sum()),
                "same": int(same.sum()),
                "changed": int((answered & ~same).sum()),
                "known": int(np.isfinite(new).sum()),
                "complete": not np.any(unknown),
                "confidence_level": confidence_level,
                **_figures(sample, old, (z, new), unknown, confidence_level, options),
                "needs_labels": [str(unit) for unit in np.array(id_texts(sample.ids))[unknown]],
            }
        )
    )


def _scattered(labelled: BoolArray, z: FloatArray) -> FloatArray:
    """Return outcomes of the drawn units (n,), NaN where there is none."""
    found = np.full(len(labelled), np.nan)
    found[labelled] = z
    return found


def _answers(sample: Sample, given: Any) -> AnyArray:
    """Return the answer to each drawn unit (n,) as text, None where there is none."""
    drawn = set(id_texts(sample.ids))
    if isinstance(given, Labels):
        kept = [place for place, name in enumerate(given.ids) if name in drawn]
        given = Labels(
            ids=tuple(given.ids[k] for k in kept),
            values=tuple(given.values[k] for k in kept),
            source=given.source,
        )
    elif hasattr(given, "items") and not hasattr(given, "index"):
        texts = dict(zip(id_texts(np.array(list(given), dtype=object)), given.values(), strict=True))
        given = {name: value for name, value in texts.items() if name in drawn}
    return class_column(sample, given, "answers of the new version")


def _old_answers(sample: Sample, given: Any, predicted: bool | str) -> AnyArray:
    if given is None:
        given = predicted if isinstance(predicted, str) else sample.predicted
    if given is None:
        raise InputError(
            "nothing says what the model answered before",
            allowed="old_answers=, or a sample drawn with the model's answers (--predicted COL)",
        )
    if isinstance(given, str) and given in sample.shown:
        return np.array([class_text(value) for value in sample.shown[given]], dtype=object)
    return _answers(sample, given) if not isinstance(given, str) else class_column(sample, given, "answers")


def _figures(
    sample: Sample,
    old: Estimate,
    z: tuple[FloatArray, FloatArray],
    unknown: BoolArray,
    level: float,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Return old, new and difference, with unknown new outcomes at their worst and at their best."""
    before, after = z
    bounds = old.bounds
    if np.any(unknown) and bounds is None:
        raise InputError(
            f"{int(unknown.sum())} answers changed, and what they can be worth has no bounds",
            action="Give bounds= (--bounds LOW,HIGH), or label them.",
        )
    shared = options | {"outcome": old.outcome, "bounds": bounds if old.outcome == "bounded" else None}
    ways = (
        [np.where(unknown, end, after) for end in (bounds or (np.nan, np.nan))]
        if np.any(unknown)
        else [after]
    )
    news = [estimate(sample, way, **shared) for way in ways]
    rows = [
        compare(
            sample,
            {"new": way, "old": before},
            confidence_level=level,
            bounds=bounds,
            target=old.target,
        ).rows[0]
        for way in ways
    ]
    intervals = [list(made.confidence_interval(level)) for made in news]
    return {
        "old": _spanned([old.value], [list(old.confidence_interval(level))]),
        "new": _spanned([made.value for made in news], intervals),
        "difference": _spanned(
            [row["difference"] for row in rows], [row["confidence_interval"] for row in rows]
        ),
    }


def _spanned(values: list[float], intervals: list[Any]) -> dict[str, Any]:
    """Return what is known of a figure from its value at worst and at best."""
    known = [interval for interval in intervals if interval is not None]
    return {
        "estimate": values[0] if len(values) == 1 else None,
        "lowest": min(values),
        "highest": max(values),
        "confidence_interval": [known[0][0], known[-1][1]] if len(known) == len(intervals) else None,
    }
