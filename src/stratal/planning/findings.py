"""`findings`: the content of a report on a sample and its labels, as one plain dict."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from stratal import __version__
from stratal.arrays import BoolArray, FloatArray
from stratal.designs.files import replacing
from stratal.designs.sample import Sample, require_sample
from stratal.designs.sample_file import sample_digest
from stratal.errors import InputError, MissingExtraError, keywords_from
from stratal.estimation.entry_points import compared_answers, estimate
from stratal.estimation.estimand import Estimand, as_estimand
from stratal.estimation.estimate import Estimate, Nonresponse
from stratal.estimation.estimates import Estimates, with_intervals, with_tables
from stratal.estimation.estimator_comparison import compare_estimators, proxy_check
from stratal.estimation.resolve import outcomes
from stratal.intervals.interval import check_confidence_level
from stratal.labels.accepted_types import labels_with_sample_ids
from stratal.labels.annotators import AnnotatorAgreement, measure_agreement
from stratal.labels.joined_labels import join_labels
from stratal.labels.label_values import class_text
from stratal.labels.labels import Labels
from stratal.planning.rounds import more_labels
from stratal.protocols import JsonDict, JsonMapping
from stratal.question.chosen_rows import RowSelection
from stratal.report.document import WRITERS, SelectionMethod, answer_lines, describe_method, report_html
from stratal.report.text import json_dict, one_line

if TYPE_CHECKING:
    from stratal.metrics.new_version import NewVersion


# Every report file contains this text near its start: only a file with this text is overwritten.
KIND = "stratal report"

# Largest number of units that a report shows, so that it opens quickly in a browser.
MAX_EXAMPLES = 100

# Number of bytes at the start of a file in which `KIND` is searched for.
_HEAD_BYTES = 4096

# Relative difference of two computations of the same estimate that is due to rounding.
_ROUNDING = 1e-9

# Largest number of characters of a text of a unit, so that a report stays small.
_MAX_TEXT_LENGTH = 2_000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Findings:
    """The content of a report, which can be written as HTML, Markdown, LaTeX or JSON.

    Parameters
    ----------
    content : dict
        Plain numbers, text, lists and dicts; `to_dict` returns it.
    """

    content: JsonMapping

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict."""
        return dict(self.content)

    def write(self, path: str | Path) -> Path:
        """Write the report to a file: `.html`, `.md` or `.json`.

        Raises
        ------
        InputError
            For any other ending, and for an existing file that is not a report.
        """
        target = Path(path)
        if target.exists() and KIND.encode() not in target.read_bytes()[:_HEAD_BYTES]:
            raise InputError(f"{target}: exists, but is not a report", action="Choose another name.")
        writers = {**WRITERS, ".json": _json_text}
        write = writers.get(target.suffix.lower())
        if write is None:
            raise InputError(f"{target}: unknown kind of report", allowed=", ".join(sorted(writers)))
        with replacing(target) as partial:
            partial.write_text(write(self.content), encoding="utf-8")
        return target

    def __repr__(self) -> str:
        return one_line(self, answer_lines(self.content))

    def __str__(self) -> str:
        return "\n".join(answer_lines(self.content))

    def _repr_html_(self) -> str:
        return report_html(self.content, standalone=False)


def _json_text(content: Mapping[str, object]) -> str:
    """Return the content as JSON text."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@keywords_from(estimate)
def findings(
    sample: Sample,
    labels: Any,
    *,
    estimates: Estimate | Estimates | None = None,
    tables: Iterable[Estimates] = (),
    notes: Sequence[str] = (),
    require: Sequence[JsonMapping] = (),
    title: str | None = None,
    question: str | None = None,
    quantity: str | None = None,
    confidence_level: float = 0.95,
    interval: str = "auto",
    pairs: Sequence[JsonMapping] = (),
    new: NewVersion | None = None,
    threshold: JsonMapping | None = None,
    commands: Sequence[str] = (),
    examples: int = 0,
    **options: Any,
) -> Findings:
    """Return the content of a report on a sample and its labels.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    estimates : Estimate or Estimates, optional
        The existing estimate; by default it is computed with `options`.
    tables : sequence of Estimates
        Metrics, comparisons and domains to report as well.
    notes : sequence of str
        Notes that are shown in addition to those of the estimate.
    require : sequence of dict
        Verdicts on requirements, as returned by `estimation.requirement.assess_requirements`.
    title, question : str, optional
        The heading, and the question for the annotators.
    quantity : str, optional
        Name of the estimate, such as `accuracy`.
    confidence_level : float
    interval : str
        Method of the intervals of the estimate and of groups.
    pairs : sequence of dict
        The agreement of each pair of annotators, as returned by `study_status`.
    new : NewVersion, optional
        Comparison with a new version of the model.
    threshold : dict, optional
        The accepted set of a score: `Threshold.to_dict()`.
    commands : sequence of str
        Commands that reproduce the report.
    examples : int
        Number of units that are shown as the annotators saw them; 0 by default, because they may be private.
    **options
        Options of `stratal.estimate`.

    Returns
    -------
    Findings

    Raises
    ------
    InputError, LabelError
        As `stratal.estimate`.
    TypeError
        For an unknown keyword.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.2] * 50 + [0.8] * 50)
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    >>> content = stratal.findings(sample, [1.0, 0.0] * 10).to_dict()
    >>> content["estimate"]["estimate"], [row["name"] for row in content["side_by_side"]]
    (0.5, ['labels, unweighted', 'proxy alone', 'with the design'])
    """
    require_sample(sample, "findings")
    from stratal.labels.label_files import read_labels_if_table  # a plan needs no labels

    labels = read_labels_if_table(labels, sample)
    check_confidence_level(confidence_level)
    request = _resolve_request(sample, labels, estimates, **options)
    if estimates is None:
        estimates = estimate(sample, labels, **options)
    if isinstance(estimates, Estimates):
        estimates = estimates.with_interval(interval)
    tables = with_intervals(tables, interval)
    if isinstance(estimates, Estimates):
        first = estimates[0]
    else:
        first = estimates
    described = _described_estimate(sample, estimates, request.labelled, confidence_level, interval)
    if new is not None:
        _check_same_estimate(new, described["estimate"])
    agreement = _agreement(sample, request.labels, classes=bool(request.predicted))
    all_notes = dict.fromkeys([*notes, *(agreement.warnings if agreement is not None else ())])
    described = with_tables(described, tables, confidence_level, list(all_notes))
    if require:
        described["requirements"] = list(require)
    if not quantity:
        quantity = first.quantity
        if isinstance(estimates, Estimates) and len(estimates) > 1:
            quantity += f" (first of {len(estimates)})"
    described["quantity"] = quantity
    comparison = []
    calibration = None
    if isinstance(estimates, Estimate) and first.outcomes is not None:
        comparison = compare_estimators(sample, first, confidence_level, interval)
        calibration = proxy_check(sample, request.labelled, first, confidence_level)
    content = {
        "kind": KIND,
        "title": title,
        "question": question,
        "confidence_level": confidence_level,
        "quantity": quantity,
        "share": described["share"],
        "estimate": described,
        "side_by_side": comparison,
        "strata": _stratum_rows(sample, first, request.labelled),
        "calibration": calibration,
        "more_labels": more_labels(
            request.estimand, sample, labels, request.labelled, estimates, confidence_level, interval
        ),
        "agreement": None if agreement is None else agreement.to_dict() | {"pairs": list(pairs)},
        "second_look": _second_look(request.labels),
        "new_version": None if new is None else new.to_dict(),
        "threshold": threshold,
        "method": _describe_method(sample, described),
        "provenance": provenance_of(sample, commands),
        "examples": _examples(sample, request.labelled, estimates, examples),
    }
    return Findings(content=json_dict(content))


def _describe_method(sample: Sample, described: JsonDict) -> JsonDict:
    """Return the sentences, assumptions and references of the method of a described estimate."""
    design = sample.design
    if design.allocation is None:
        rule = None
    else:
        rule = design.allocation.method
    return describe_method(
        described, design.report_description, design.assumption, rule, selection_of(sample)
    )


def _described_estimate(
    sample: Sample,
    estimates: Estimate | Estimates,
    labelled: BoolArray,
    confidence_level: float,
    interval: str,
) -> JsonDict:
    """Return the first estimate as a dict, with the rows of all of them if there are several."""
    if isinstance(estimates, Estimate):
        first = estimates
        described = first.to_dict(confidence_level, interval)
    else:
        first = estimates[0]
        # Without an interval, `to_dict` raises an error, but a table may have such rows.
        described = first.described(confidence_level, interval)
    if first.outcomes is None:  # some labels do not count, such as those of tied answers
        n_labelled = int(labelled.sum())
        nonresponse = Nonresponse(drawn=sample.size, labelled=n_labelled)
        described |= {"labels": n_labelled, "nonresponse": nonresponse.to_dict()}
    if isinstance(estimates, Estimate):
        return described
    return with_tables(described | {"notes": []}, [estimates], confidence_level)


def _check_same_estimate(new: NewVersion, value: float) -> None:
    """Raise an error if a new version was compared with another estimate than that of the report."""
    old_value = new.described["old"]["estimate"]
    if old_value is not None and abs(old_value - value) > _ROUNDING * max(1.0, abs(old_value)):
        raise InputError(
            "the new version was not compared with this report's estimate of the old version",
            given=f"{old_value:.6g} and {value:.6g}",
            action="Use the same labels and options for both.",
        )


def more_labels_of(
    sample: Sample,
    labels: Any,
    estimates: Estimate | Estimates,
    confidence_level: float = 0.95,
    interval: str = "auto",
    **options: Any,
) -> list[JsonDict]:
    """Return the half-widths that are expected with more labels (`rounds.more_labels`); [] if unknown.

    Parameters and options are those of `findings`.
    """
    try:
        request = _resolve_request(sample, labels, estimates, **options)
        return more_labels(
            request.estimand, sample, labels, request.labelled, estimates, confidence_level, interval
        )
    except InputError:  # the estimate is valid, whether or not a forecast is possible
        return []


class _Request(NamedTuple):
    """The estimand of a report, and its labels of one column.

    Parameters
    ----------
    estimand : Estimand
    predicted : bool or str, optional
        The column of answers with which labels are compared.
    labels : see `stratal.estimate`
    labelled : bool (n,)
        Which drawn units have a label.
    """

    estimand: Estimand
    predicted: bool | str | None
    labels: Any
    labelled: BoolArray


def _resolve_request(
    sample: Sample,
    labels: Any,
    estimates: Estimate | Estimates | None,
    *,
    estimand: Any = None,
    predicted: bool | str | None = None,
    combine: str = "mean",
    **_other_options: Any,
) -> _Request:
    """Return the estimand from the options, the estimate or else the sample, and its labels."""
    if estimand is None and isinstance(estimates, Estimate):
        estimand = estimates.label.get("estimand")
    requested = as_estimand(estimand or sample.question.estimand)
    columns = requested.label_columns(sample)
    column_labels = labels[columns[0]] if columns else labels
    answer_column = compared_answers(requested, sample, column_labels, predicted)
    # Other rules of combination may give a unit no label.
    if combine == "mean":
        labelled = join_labels(sample, column_labels).labelled
    else:
        labelled = outcomes(sample, column_labels, predicted, combine).labelled
    return _Request(estimand=requested, predicted=answer_column, labels=column_labels, labelled=labelled)


def _stratum_rows(sample: Sample, estimate: Estimate, labelled: BoolArray) -> list[JsonDict]:
    """Return the estimate's strata with the number of drawn units and the mean proxy of each."""
    rows = [row.to_dict() for row in estimate.strata]
    sizes = sample.summary.sizes
    if estimate.outcomes is None and len(sizes) > 1 and sample.design.strata is not None:
        # The rows of the estimate omit strata in which no label counts.
        counts = np.bincount(sample.stratum[labelled], minlength=len(sizes))
        rows = [
            {
                "name": name,
                "size": int(size),
                "n": int(n),
                "weight": float(size / sizes.sum()),
                "mean": None,
                "standard_deviation": None,
                "lam": [],
            }
            for name, size, n in zip(sample.design.strata.names, sizes, counts, strict=True)
        ]
    if len(rows) < 2 and rows and rows[0]["mean"] is None:
        return []
    if len(rows) != len(sizes):
        return [{**row, "drawn": row["n"], "proxy_mean": None} for row in rows]
    proxy_means: list[float] | list[None] = [None] * len(rows)
    if sample.proxy_names:
        proxy_means = _without_rounding_errors(sample.summary.proxy_means[:, 0])
    return [
        {**row, "drawn": int(drawn), "proxy_mean": proxy_mean}
        for row, drawn, proxy_mean in zip(rows, sample.n_h, proxy_means, strict=True)
    ]


def _without_rounding_errors(means: FloatArray) -> list[float]:
    """Return means (H,) rounded to twelve significant digits of the largest.

    Means from sums of centred proxies have rounding errors, but a mean of zeros should be 0, and one of ones
    1.
    """
    largest = float(np.abs(means).max())
    if largest == 0:
        return [0.0] * len(means)
    decimals = 11 - math.floor(math.log10(largest))
    return [round(float(mean), decimals) for mean in means]


def _agreement(sample: Sample, labels: object, *, classes: bool) -> AnnotatorAgreement | None:
    """Return the agreement of the annotators; None if the package for it is not installed."""
    try:
        return measure_agreement(labels_with_sample_ids(sample, labels), classes=classes)
    except MissingExtraError:
        # The agreement is an additional section: a report without it is still complete.
        return None


def _second_look(labels: Any) -> list[JsonDict] | None:
    """Return the first and the current label of each unit whose label was replaced; None if none was."""
    if isinstance(labels, Labels):
        replaced = labels.replaced
    else:
        replaced = None
    if replaced is None:
        return None
    current_labels = dict(zip(labels.ids, labels.values, strict=True))
    first_labels: dict[str, list[str]] = {}
    for unit, label in zip(replaced.ids, replaced.values, strict=True):
        first_labels.setdefault(unit, []).append(class_text(label))
    return [
        {"id": unit, "first": ", ".join(texts), "now": class_text(current_labels[unit])}
        for unit, texts in first_labels.items()
    ]


def selection_of(sample: Sample) -> SelectionMethod:
    """Return how the labelled units of a sample were chosen, for the description of the method."""
    # The description is followed by its sources.
    description, *_ = sample.design.report_description or (f"a {sample.design.kind} sample",)
    if sample.question.chosen is not None:
        row_selection = RowSelection.parse(sample.question.chosen)
        n_missing = sample.population_size - sample.size
        return SelectionMethod(*row_selection.report_assumptions(description, n_missing))
    if sample.is_external:
        return SelectionMethod.drawn(description, "declared to be")
    return SelectionMethod.drawn(description)


def provenance_of(sample: Sample, commands: Sequence[str]) -> JsonDict:
    """Return the versions, the digest of the sample, and its seed or the choice of its labelled rows."""
    origin: JsonDict = {"drawn with stratal": sample.version, "seed": sample.seed}
    if sample.question.chosen is not None:
        origin = {"labelled rows": sample.question.chosen}
    elif sample.is_external:
        origin = {"drawn": "elsewhere"}
    return {
        "written": datetime.now(UTC).date().isoformat(),
        "stratal": __version__,
        **origin,
        "design": sample.design.kind,
        "sample's SHA-256": sample_digest(sample),
        "Python": platform.python_version(),
        **{library.__name__: library.__version__ for library in (np, scipy)},
        "commands": list(commands),
    }


def _examples(
    sample: Sample, labelled: BoolArray, estimates: Estimate | Estimates, max_examples: int
) -> list[JsonDict]:
    """Return units as annotators saw them, with the largest differences of label and proxy first."""
    if max_examples <= 0:
        return []
    rows = np.flatnonzero(labelled)
    z = np.full(len(rows), np.nan)
    if isinstance(estimates, Estimate) and estimates.outcomes is not None:
        z = estimates.outcomes
    differences = np.zeros(len(z))
    if sample.proxies.shape[1] and sample.proxy_info[0].scaled and np.all(np.isfinite(z)):
        differences = np.abs(z - sample.proxies[rows, 0])
    order = np.argsort(-differences, kind="stable")[: min(max_examples, MAX_EXAMPLES)]
    examples = []
    for position in order.tolist():
        row = rows[position]
        example: JsonDict = {sample.question.id: str(sample.ids[row])}
        example |= {name: _shown_text(values[row]) for name, values in sample.shown.items()}
        if sample.proxy_info:
            example[sample.proxy_info[0].name] = float(sample.proxies[row, 0])
        if np.isfinite(z[position]):
            example["outcome"] = float(z[position])
        examples.append(example)
    return examples


def _shown_text(value: object) -> str:
    """Return a value as text, as annotators saw it; long texts are truncated."""
    if isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= _MAX_TEXT_LENGTH:
        return text
    return text[:_MAX_TEXT_LENGTH] + " …"
