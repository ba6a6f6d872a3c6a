"""`findings`: all that a report says of a sample and its labels, as one plain dict."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from stratal import __version__
from stratal.arrays import BoolArray
from stratal.designs.files import replacing
from stratal.designs.sample import Sample, require_sample
from stratal.designs.sample_file import sample_digest
from stratal.errors import InputError, MissingExtraError, listing, names_mistyped
from stratal.estimation.entry_points import compared_answers, estimate
from stratal.estimation.estimand import Estimand, as_estimand
from stratal.estimation.estimate import Estimate, Estimates, Nonresponse, with_tables
from stratal.estimation.estimator_comparison import proxy_check, side_by_side
from stratal.estimation.resolve import outcomes
from stratal.intervals.interval import tail_shares
from stratal.labels.annotators import AnnotatorAgreement, measure_agreement
from stratal.labels.label_values import class_text
from stratal.labels.labels import Labels, join_labels, labels_with_sample_ids
from stratal.planning.rounds import more_labels
from stratal.report.document import WRITERS, describe_method, report_html
from stratal.report.estimates import answer_sentence
from stratal.report.text import json_dict

if TYPE_CHECKING:
    from stratal.metrics.new_version import NewVersion


# The first word of every report's file, so that none is written over anything else.
KIND = "stratal report"

MOST_EXAMPLES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that a report says; it writes itself as HTML, Markdown, LaTeX or JSON.

    Parameters
    ----------
    found : dict
        Plain numbers, text, lists and dicts; `to_dict` gives it.
    """

    found: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict."""
        return dict(self.found)

    def write(self, path: str | Path) -> Path:
        """Write the report to a file: `.html`, `.md` or `.json`.

        Raises
        ------
        InputError
                For any other ending, and where there is a file that is no report.
        """
        target = Path(path)
        if target.exists() and KIND.encode() not in target.read_bytes()[:4096]:
            raise InputError(f"{target}: exists and is not a report", action="Choose another name.")
        writers = {**WRITERS, ".json": _json_text}
        write = writers.get(target.suffix.lower())
        if write is None:
            raise InputError(f"{target}: unknown kind of report", allowed=", ".join(sorted(writers)))
        with replacing(target) as partial:
            partial.write_text(write(self.found), encoding="utf-8")
        return target

    def __str__(self) -> str:
        return answer_sentence(self.found)

    def _repr_html_(self) -> str:
        return report_html(self.found, standalone=False)


def _json_text(found: Mapping[str, Any]) -> str:
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@names_mistyped
@listing(estimate)
def findings(
    sample: Sample,
    labels: Any,
    *,
    found: Estimate | Estimates | None = None,
    tables: Iterable[Estimates] = (),
    notes: Sequence[str] = (),
    require: Sequence[Mapping[str, Any]] = (),
    title: str | None = None,
    question: str | None = None,
    quantity: str | None = None,
    confidence_level: float = 0.95,
    interval: str = "auto",
    pairs: Sequence[Mapping[str, Any]] = (),
    new: NewVersion | None = None,
    commands: Sequence[str] = (),
    examples: int = 0,
    **options: Any,
) -> Findings:
    """Return all that a report says of a sample and its labels.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    found : Estimate, optional
        The estimate, if it already exists; otherwise made with `options`.
    tables : sequence of Estimates
        Metrics, comparisons and domains to be reported too.
    notes : sequence of str
        Shown in addition to the estimate's own.
    require : sequence of dict
        Verdicts on what was required, as `estimation.requirement.held_against` gives them.
    title, question : str, optional
        The heading, and what the annotators were asked.
    quantity : str, optional
        What the estimate is called, such as `accuracy`.
    confidence_level : float
    interval : str
        Method of the interval.
    pairs : sequence of dict
        How far each pair of annotators agrees, as `study_status` gives it, in addition to how far all do.
    new : NewVersion, optional
        What the labels say of a new version of the model.
    commands : sequence of str
        Lines that make the report again.
    examples : int
        Units shown with what the annotators saw; none by default, since that may be private.
    **options
        As of `stratal.estimate`.

    Returns
    -------
    Findings

    Raises
    ------
    InputError, LabelError
        As `stratal.estimate`.
    TypeError
        For a keyword that neither has.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.2] * 50 + [0.8] * 50)
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    >>> found = stratal.findings(sample, [1.0, 0.0] * 10).to_dict()
    >>> found["estimate"]["estimate"], [row["name"] for row in found["side_by_side"]]
    (0.5, ['labels, unweighted', 'proxy alone', 'with the design'])
    """
    require_sample(sample, "findings")
    from stratal.labels.label_files import read_from_table  # a plan needs no labels

    labels = read_from_table(labels, sample)
    tail_shares(confidence_level, "two-sided")
    requested, predicted, one, labelled = _asked(sample, labels, found, **options)
    made: Any = found or estimate(sample, labels, **options)
    level: dict[str, Any] = {"confidence_level": confidence_level, "interval": interval}
    several = isinstance(made, Estimates)
    first: Estimate = made[0] if several else made
    # A table says of each row whether it has an interval; an estimate alone that has none is refused.
    described = (first.described if several else first.to_dict)(confidence_level, interval)
    if first.outcomes is None:  # units whose answers are tied are labelled, though they do not count
        count = int(labelled.sum())
        answered = Nonresponse(drawn=sample.size, labelled=count)
        described |= {"labels": count, "nonresponse": answered.to_dict()}
    if several:
        described = with_tables(described | {"notes": []}, [made], confidence_level)
    old = None if new is None else new.described["old"]["estimate"]
    if old is not None and abs(old - described["estimate"]) > _SAME * max(1.0, abs(old)):
        what = "the new version was compared with another estimate of the old one than this report's"
        given = f"{old:.6g} and {described['estimate']:.6g}"
        raise InputError(what, given=given, action="Give both the same labels and options.")
    agreed = _agreement(sample, one, classes=bool(predicted))
    all_notes = dict.fromkeys([*notes, *(agreed.warnings if agreed is not None else ())])
    described = with_tables(described, list(tables), confidence_level, list(all_notes))
    if require:
        described["requirements"] = list(require)
    if several and len(made) > 1:
        number = f" (first of {len(made)})"
    else:
        number = ""
    compared = []
    calibration = None
    if not several and made.outcomes is not None:
        compared = side_by_side(sample, first, confidence_level, interval)
        calibration = proxy_check(sample, labelled, first, confidence_level)
    design = sample.design
    if design.allocation is None:
        rule = None
    else:
        rule = design.allocation.method
    return Findings(
        found=json_dict(
            {
                "kind": KIND,
                "title": title,
                "question": question,
                "confidence_level": confidence_level,
                "quantity": quantity or _quantity(sample, labels, requested, first, predicted) + number,
                "share": first.bounds == (0.0, 1.0),
                "estimate": described,
                "side_by_side": compared,
                "strata": _strata(sample, first, labelled),
                "calibration": calibration,
                "more_labels": more_labels(requested, sample, labels, labelled, made, **level),
                "agreement": None if agreed is None else agreed.to_dict() | {"pairs": list(pairs)},
                "second_look": _second_look(one),
                "new_version": None if new is None else new.to_dict(),
                "method": describe_method(described, design.words, design.assumption, rule),
                "provenance": _provenance(sample, commands),
                "examples": _examples(sample, labelled, made, examples),
            }
        )
    )


def more_labels_of(
    sample: Sample,
    labels: Any,
    found: Estimate,
    confidence_level: float = 0.95,
    interval: str = "auto",
    **options: Any,
) -> list[dict[str, Any]]:
    """Return what more labels would buy of an estimate: see `rounds.more_labels`; options as `findings`."""
    try:
        requested, _, _, labelled = _asked(sample, labels, found, **options)
        return more_labels(requested, sample, labels, labelled, found, confidence_level, interval)
    except InputError:  # an estimate stands, whether or not anything is expected of more labels
        return []


def _asked(
    sample: Sample,
    labels: Any,
    found: Any,
    *,
    estimand: Any = None,
    predicted: bool | str | None = None,
    combine: str = "mean",
    **others: Any,
) -> tuple[Estimand, bool | str | None, Any, BoolArray]:
    """Return the estimand, the column of compared answers, labels, and which units (n,) have one."""
    if isinstance(found, Estimate):
        own = found.label.get("estimand")
    else:
        own = None
    requested = as_estimand(estimand or own or sample.question.estimand)
    columns = requested.label_columns(sample)
    one = labels[columns[0]] if columns else labels  # whose units are labelled, and by whom
    compared = compared_answers(requested, sample, one, predicted)
    if combine == "mean":
        return requested, compared, one, join_labels(sample, one).labelled
    return requested, compared, one, outcomes(sample, one, predicted, combine).labelled


# Rounding by which two ways to the same estimate may differ.
_SAME = 1e-9


def _quantity(
    sample: Sample, labels: Any, requested: Estimand, first: Estimate, predicted: bool | str | None
) -> str:
    """Return what the estimate is called: the estimand, or what the labels of a mean say."""
    label = dict(first.label)
    if label:
        own = label.pop("estimand", None)
        title = (requested if own in (None, requested.text) else as_estimand(own)).title
        between = " of " if first.null is None else " − "
        of = between.join(value for value in reversed(label.values()) if value)
        return ": ".join(filter(None, ["" if "metric" in label and own is None else title, of]))
    if predicted:
        return "accuracy"
    if first.outcome != "binary":
        return "mean outcome"
    rows = join_labels(sample, labels).table()
    words = [row.value for row in rows if row.meaning == 1.0 and not row.usual]
    return f"share of {' or '.join(map(repr, words)) or 'ones'}"


def _strata(sample: Sample, found: Estimate, labelled: BoolArray) -> list[dict[str, Any]]:
    """Return the estimate's strata with the units drawn and the mean proxy of each."""
    rows = [row.to_dict() for row in found.strata]
    sizes = sample.summary.sizes
    if found.outcomes is None and len(sizes) > 1 and sample.design.strata is not None:
        # Its own rows leave out strata of which no label counts.
        counts = np.bincount(sample.stratum[labelled], minlength=len(sizes))
        unknown: dict[str, Any] = {"mean": None, "standard_deviation": None, "lam": []}
        rows = [
            {"name": name, "size": int(size), "n": int(n), "weight": float(size / sizes.sum()), **unknown}
            for name, size, n in zip(sample.design.strata.names, sizes, counts, strict=True)
        ]
    if len(rows) < 2 and rows and rows[0]["mean"] is None:
        return []
    if len(rows) != len(sizes):
        return [{**row, "drawn": row["n"], "proxy_mean": None} for row in rows]
    proxies = sample.summary.proxy_means
    return [
        {**row, "drawn": int(drawn), "proxy_mean": float(proxies[h, 0]) if proxies.shape[1] else None}
        for h, (row, drawn) in enumerate(zip(rows, sample.n_h, strict=True))
    ]


def _agreement(sample: Sample, labels: Any, *, classes: bool) -> AnnotatorAgreement | None:
    try:
        return measure_agreement(labels_with_sample_ids(sample, labels), classes=classes)
    except MissingExtraError:
        return None


def _second_look(labels: Any) -> list[dict[str, Any]] | None:
    """Return the first and the present label of each unit whose label was replaced; None where none was."""
    first = labels.replaced if isinstance(labels, Labels) else None
    if first is None:
        return None
    now = dict(zip(labels.ids, labels.values, strict=True))
    said: dict[str, list[str]] = {}
    for unit, answer in zip(first.ids, first.values, strict=True):
        said.setdefault(unit, []).append(class_text(answer))
    return [
        {"id": unit, "first": ", ".join(before), "now": class_text(now[unit])}
        for unit, before in said.items()
    ]


def _provenance(sample: Sample, commands: Sequence[str]) -> dict[str, Any]:
    return {
        "written": datetime.now(UTC).date().isoformat(),
        "stratal": __version__,
        "drawn with stratal": sample.version,
        "seed": sample.seed,
        "design": sample.design.kind,
        "sample's SHA-256": sample_digest(sample),
        "Python": platform.python_version(),
        **{library.__name__: library.__version__ for library in (np, scipy)},
        "commands": list(commands),
    }


def _examples(
    sample: Sample, labelled: BoolArray, found: Estimate | Estimates, most: int
) -> list[dict[str, Any]]:
    """Return units as annotators saw them, those first whose label differs most from the proxy."""
    if most <= 0:
        return []
    rows = np.flatnonzero(labelled)
    known = found.outcomes if isinstance(found, Estimate) else None
    z = np.full(len(rows), np.nan) if known is None else known
    surprise = np.zeros(len(z))
    if sample.proxies.shape[1] and sample.proxy_info[0].scaled and np.all(np.isfinite(z)):
        surprise = np.abs(z - sample.proxies[rows, 0])
    order = np.argsort(-surprise, kind="stable")[: min(most, MOST_EXAMPLES)]
    return [
        {
            sample.question.id: str(sample.ids[rows[k]]),
            **{name: _shown(values[rows[k]]) for name, values in sample.shown.items()},
            **({sample.proxy_info[0].name: float(sample.proxies[rows[k], 0])} if sample.proxy_info else {}),
            **({"outcome": float(z[k])} if np.isfinite(z[k]) else {}),
        }
        for k in order
    ]


def _shown(value: Any) -> Any:
    """Return what an annotator saw as text; long texts are cut."""
    if isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


# Characters of a shown text, so that a report stays small.
_LONGEST = 2_000
