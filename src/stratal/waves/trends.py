"""`trend`: the level of each wave, its changes, the drift of the score, and an alarm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from stratal import __version__
from stratal.errors import InputError, keywords_from
from stratal.estimation.estimate import Estimate
from stratal.evaluation.request import EvaluationRequest
from stratal.intervals.interval import check_confidence_level
from stratal.protocols import JsonDict
from stratal.report.figures import Intervals, PlotDisplay
from stratal.report.notes import warnings_among
from stratal.report.text import Page, PageDisplay, json_dict, json_value
from stratal.report.trends import trend_html, trend_page
from stratal.report.verdicts import ALARM, NO_ALARM, UNDECIDED
from stratal.waves.alarm import Alarm, raise_alarms
from stratal.waves.changes import Change, change_between, correlation_between, paired_change
from stratal.waves.order import are_sortable
from stratal.waves.pooled import MIN_WAVES, PooledLevel, pool_levels
from stratal.waves.score import score_drift
from stratal.waves.wave import MEAN_OF_ALL_ITEMS, RowKey, Wave, read_waves

# Options of `stratal.evaluate` that have a meaning only for a single sample.
SINGLE_SAMPLE_OPTIONS = ("against", "answers", "new_labels", "look", "population", "calibration", "features")

# Names of the rows of a trend.
LEVEL = "level"
SINCE_PREVIOUS = "change since the previous wave"
SINCE_FIRST = "change since the first wave"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """A level of the latest wave or a change to it, with an interval that holds for all rows together.

    Parameters
    ----------
    label : mapping of str
        The group, model or metric; empty for the mean of all items.
    quantity : {"level", "change since the previous wave", "change since the first wave"}
    reference : str, optional
        The wave from which a change is measured.
    estimate : Estimate or Change
    confidence_interval : list, optional
        Simultaneous for all rows; None if there is no interval.
    """

    label: dict[str, str | None]
    quantity: str
    reference: str | None
    estimate: Estimate | Change
    confidence_interval: list[float | None] | None

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict."""
        p_value = None
        has_shared_items = False
        if isinstance(self.estimate, Change):
            p_value = self.estimate.p_value
            has_shared_items = self.estimate.is_paired or self.estimate.correlation != 0
        return json_dict(
            {
                **self.label,
                "quantity": self.quantity,
                "reference": self.reference,
                "estimate": self.estimate.value,
                "standard_error": self.estimate.standard_error,
                "confidence_interval": self.confidence_interval,
                "p_value": p_value,
                "same_items": has_shared_items,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Trend(PageDisplay, PlotDisplay):
    """Levels by wave, changes to the latest wave, drift of the score, and alarms.

    Parameters
    ----------
    waves : tuple of Wave
    rows : tuple of TrendRow
        Levels and changes of the latest wave with labels.
    alarms : tuple of Alarm, optional
        One for each requirement; None if nothing is required.
    confidence_level : float
    row_level : float
        Confidence level of the interval of each row. All intervals hold simultaneously with
        `confidence_level` (Šidák).
    interval : str
        Method of the intervals of levels.
    notes : tuple of str
    pooled : PooledLevel, optional
        The latest level, estimated also from earlier waves; for three waves or more with a bounded outcome.
    """

    waves: tuple[Wave, ...]
    rows: tuple[TrendRow, ...]
    alarms: tuple[Alarm, ...] | None
    confidence_level: float
    row_level: float
    interval: str
    notes: tuple[str, ...]
    pooled: PooledLevel | None = None

    def __repr__(self) -> str:
        if self.verdict is None:
            verdict = ""
        else:
            verdict = f", verdict={self.verdict!r}"
        return f"Trend({len(self.waves)} waves, latest={self.latest.name!r}{verdict})"

    @property
    def latest(self) -> Wave:
        """The latest wave with labels."""
        return [wave for wave in self.waves if wave.evaluation is not None][-1]

    @property
    def verdict(self) -> str | None:
        """The verdict on all requirements together; None if nothing is required.

        ALARM if a requirement is violated in any wave, otherwise UNDECIDED if one is not tested yet,
        otherwise NO ALARM.
        """
        if self.alarms is None:
            return None
        verdicts = {alarm.verdict for alarm in self.alarms}
        # In the order of importance: one alarm decides.
        for verdict in (ALARM, UNDECIDED):
            if verdict in verdicts:
                return verdict
        return NO_ALARM

    @property
    def is_alarm(self) -> bool:
        """Whether a requirement is violated in any wave."""
        return self.verdict == ALARM

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict: what the command prints with `--json`."""
        first_row = next(iter(self.latest.rows.values()))
        drift = score_drift([wave.name for wave in self.waves], [wave.scores for wave in self.waves])
        result: JsonDict = {
            "waves": [self._wave_dict(wave) for wave in self.waves],
            "latest": self.latest.name,
            "rows": [row.to_dict() for row in self.rows],
            "confidence_level": self.confidence_level,
            "row_level": self.row_level,
            "outcome": first_row.outcome,
            "share": first_row.is_share,
            "score": drift,
            "notes": list(self.notes),
        }
        if self.pooled is not None:
            result["pooled"] = self.pooled.to_dict()
        if self.alarms is not None:
            result["verdict"] = self.verdict
            result["alarms"] = [alarm.to_dict() for alarm in self.alarms]
        return result

    def _wave_dict(self, wave: Wave) -> JsonDict:
        """Return name, labels and estimates of a wave; its intervals are those of the wave alone."""
        estimates = []
        for label, row in wave.rows.items():
            entry = {
                **dict(label),
                "estimate": json_value(row.value),
                "standard_error": json_value(row.standard_error),
                "confidence_interval": row.limits(self.confidence_level, self._interval_method(row)),
                "n": row.n,
            }
            estimates.append(entry)
        label_count = 0
        if wave.rows:
            label_count = next(iter(wave.rows.values())).labels
        sample = wave.sample
        return {
            "wave": wave.name,
            "labels": label_count,
            "drawn": None if sample is None else sample.size,
            "population_size": None if sample is None else sample.population_size,
            "estimates": estimates,
        }

    def _interval_method(self, row: Estimate) -> str:
        """Return the requested method for the mean of all items; other rows have only the default method."""
        if row.label:
            return "auto"
        return self.interval

    def write(self, path: str | Path) -> Path:
        """Write the report, a self-contained HTML page, and return its path.

        Raises
        ------
        InputError
            If the name does not end in .html, or the file exists.
        """
        path = Path(path)
        if path.suffix != ".html":
            raise InputError(
                f"{path}: a trend report must be an HTML file", allowed="a name that ends in .html"
            )
        if path.exists():
            raise InputError(f"{path}: already exists", action="Give the name of a new file.")
        path.write_text(trend_html(self.to_dict(), __version__), encoding="utf-8")
        return path

    def _page(self) -> Page:
        return trend_page(self.to_dict())

    def _plot(self) -> Intervals:
        first = next(iter(self.latest.rows))
        rows: list[tuple[str, float | None, list[float | None] | None]] = []
        for wave in self.waves:
            row = wave.rows.get(first)
            if row is None:
                rows.append((wave.name, None, None))
            else:
                limits = row.limits(self.confidence_level, self._interval_method(row))
                rows.append((wave.name, row.value, limits))
        return Intervals(
            title=f"{len(self.waves)} waves",
            x_label=" ".join(str(value) for _, value in first) or "mean outcome",
            rows=rows,
            confidence_level=self.confidence_level,
        )


@keywords_from(EvaluationRequest, without=SINGLE_SAMPLE_OPTIONS)
def trend(
    waves: Any,
    *,
    wave: str | None = None,
    require: str | Sequence[str] | None = None,
    reference: int = 4,
    max_change: float | None = None,
    **options: Any,
) -> Trend:
    """Compare waves of items over time: levels, changes, drift of the score, and an alarm.

    Parameters
    ----------
    waves : list, mapping of name to wave, or table
        The waves in the order of time. A wave is a pair (sample, labels); a folder that `draw` wrote, with
        the labels in its to_label.csv or as `FOLDER=FILE,…`; or a study. A wave without labels is used only
        for the drift of the score.
    wave : str, optional
        The column of the wave, if `waves` is one table with labels. Waves are sorted if their names differ in
        only one number (9, week 9) or begin with the year (2026-03-02, 2026-W09, 2026Q1). Otherwise (March,
        Q1 2026), they keep the order of the rows, if the rows of each wave are adjacent and years increase.
    require : str or sequence of str, optional
        An alarm for `>=.9` or `<=.05` (the level of every wave), `value@de>=.9` (the level of a group of
        `by`), `fell<=.03` or `rose<=.03` (the change since the reference).
    reference : int
        Number of first waves that form the reference for a fall or rise: their highest, or lowest, level.
    max_change : float, optional
        Assumed largest change of the level between two waves; with it, the pooled level has an interval.
    **options
        Options of `stratal.evaluate`: `by`, `estimand`, `confidence_level`, `predicted`, `bounds`, …

    Returns
    -------
    Trend

    Raises
    ------
    InputError, LabelError
        For fewer than two waves, if there are no labels, for an unclear order of waves, and for errors of
        `stratal.evaluate` for a wave.

    Notes
    -----
    The intervals of the latest level, its two changes and their groups are simultaneous (Šidák 1967); the
    intervals of earlier waves are not, so that a new wave does not change them. The alarm is an e-process:
    the probability that it is ever raised while every wave meets the requirement is at most
    1 − `confidence_level`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(ids=range(1000))
    >>> samples = [stratal.designs.SimpleRandom(budget=100).draw(population, seed=seed) for seed in (1, 2)]
    >>> result = stratal.trend([(samples[0], [1] * 95 + [0] * 5), (samples[1], [1] * 80 + [0] * 20)])
    >>> round(result.rows[1].estimate.value, 2), result.rows[1].quantity
    (-0.15, 'change since the previous wave')
    """
    for name in SINGLE_SAMPLE_OPTIONS:
        if options.pop(name, None):
            raise InputError(f"trend takes no {name}=", allowed="options that hold for every wave")
    confidence_level = options.get("confidence_level", 0.95)
    check_confidence_level(confidence_level)
    if reference < 1:
        raise InputError(
            "reference= (--reference) must be a number of waves", given=reference, allowed="1 or more"
        )
    if max_change is not None and not 0 <= max_change < np.inf:
        raise InputError("max_change= (--max-change) is out of range", given=max_change, allowed="0 or more")
    all_waves = read_waves(waves, wave, options)
    labelled = waves_with_labels(all_waves)
    if not labelled:
        raise InputError(
            "no wave has a label",
            given=", ".join(entry.name for entry in all_waves),
            action="Fill in the column label of each to_label.csv, or name the files: FOLDER=FILE.",
        )
    method = options.get("interval", "auto")
    rows, row_level = _simultaneous_rows(labelled, confidence_level, method)
    alarms = None
    if require is not None:
        requirements = require.split(";") if isinstance(require, str) else list(require)
        alarms = raise_alarms(all_waves, requirements, reference, confidence_level)
    pooled = _pooled_level(labelled, max_change, confidence_level)
    if pooled is None and max_change is not None:
        raise InputError(
            "no level can be pooled",
            allowed=f"{MIN_WAVES} waves or more with labels, different items, and a bounded outcome",
            action="Leave max_change= (--max-change) out.",
        )
    notes = [
        *_order_notes(all_waves, wave),
        *_trend_notes(all_waves, rows, alarms),
        *_large_change_warnings(labelled, max_change, confidence_level),
    ]
    return Trend(
        waves=tuple(all_waves),
        rows=rows,
        alarms=alarms,
        confidence_level=confidence_level,
        row_level=row_level,
        interval=method,
        notes=tuple(notes),
        pooled=pooled,
    )


def _pooled_level(
    labelled: Sequence[Wave], max_change: float | None, confidence_level: float
) -> PooledLevel | None:
    """Return the pooled level of all items; None if waves share items, or have other estimands.

    The method assumes independent estimates.
    """
    rows = [wave.rows.get(MEAN_OF_ALL_ITEMS) for wave in labelled]
    estimates = [row for row in rows if row is not None]
    if len(estimates) < len(labelled):
        return None
    latest = labelled[-1]
    if any(correlation_between(latest, wave, MEAN_OF_ALL_ITEMS) for wave in labelled[:-1]):
        return None
    values = np.array([row.value for row in estimates])
    standard_errors = np.array([row.standard_error for row in estimates], dtype=np.float64)
    label_counts = np.array([row.labels for row in estimates], dtype=np.float64)
    return pool_levels(
        values,
        standard_errors,
        label_counts,
        max_change=max_change,
        confidence_level=confidence_level,
        bounds=estimates[-1].bounds,
    )


def _large_change_warnings(
    labelled: Sequence[Wave], max_change: float | None, confidence_level: float
) -> list[str]:
    """Return a warning if two waves in succession differ by more than the stated largest change."""
    if max_change is None:
        return []
    # Šidák, for all pairs of successive waves.
    pair_level = confidence_level ** (1.0 / (len(labelled) - 1))
    names = []
    for earlier, later in pairwise(labelled):
        later_level = later.rows[MEAN_OF_ALL_ITEMS]
        earlier_level = earlier.rows[MEAN_OF_ALL_ITEMS]
        # A level is pooled only if waves have different items, so that estimates are independent.
        change = change_between(later_level, earlier_level, correlation=0.0)
        low, high = change.limits(pair_level) or (None, None)
        if (low is not None and low > max_change) or (high is not None and high < -max_change):
            names.append(f"{earlier.name} and {later.name}")
    if not names:
        return []
    waves = ", ".join(names)
    return [f"the level changed by more than {max_change:g} between {waves}: do not use the pooled level"]


def _simultaneous_rows(
    labelled: Sequence[Wave], confidence_level: float, method: str
) -> tuple[tuple[TrendRow, ...], float]:
    """Return the rows of the latest wave with simultaneous intervals, and the level of each interval."""
    latest = labelled[-1]
    references = {}
    if len(labelled) > 1:
        references[SINCE_PREVIOUS] = labelled[-2]
    # With two waves, the previous one is the first.
    if len(labelled) > 2:
        references[SINCE_FIRST] = labelled[0]
    # The key of the row, the quantity, the name of the reference wave, and the level or change.
    levels_and_changes: list[tuple[RowKey, str, str | None, Estimate | Change]] = []
    for key, row in latest.rows.items():
        levels_and_changes.append((key, LEVEL, None, row))
        for quantity, wave in references.items():
            if key in wave.rows:
                change = None if key else paired_change(latest, wave)
                if change is None:
                    correlation = correlation_between(latest, wave, key)
                    change = change_between(row, wave.rows[key], correlation)
                levels_and_changes.append((key, quantity, wave.name, change))
    # Šidák.
    row_level = confidence_level ** (1.0 / len(levels_and_changes))
    rows = []
    for key, quantity, reference, estimate in levels_and_changes:
        if isinstance(estimate, Change):
            limits = estimate.limits(row_level)
        else:
            limits = estimate.limits(row_level, "auto" if estimate.label else method)
        rows.append(
            TrendRow(
                label=dict(key),
                quantity=quantity,
                reference=reference,
                estimate=estimate,
                confidence_interval=limits,
            )
        )
    return tuple(rows), row_level


def _order_notes(waves: Sequence[Wave], wave_column: str | None) -> list[str]:
    """Return a note if the waves are in the order of the rows, which the user must check."""
    if wave_column is None or are_sortable([wave.name for wave in waves]):
        return []
    first = waves[0].name
    latest = waves[-1].name
    return [f"the waves are in the order of the rows: {first} is the first and {latest} is the latest"]


def _trend_notes(
    waves: Sequence[Wave], rows: Sequence[TrendRow], alarms: Sequence[Alarm] | None
) -> list[str]:
    """Return notes on labels, shared items, the target and designs, and the warnings of the latest wave."""
    notes = [*_label_notes(waves), *_shared_item_notes(rows)]
    first_row = next(iter(waves_with_labels(waves)[0].rows.values()))
    if first_row.target == "superpopulation":
        notes.append("levels refer to future items from the same source (target superpopulation)")
    if alarms and _have_same_seed(waves_with_labels(waves)):
        notes.append(
            "samples without ids that were drawn with the same seed have the same row numbers: the bound on "
            "false alarms assumes that each row number is a different item in each wave; draw with different "
            "seeds"
        )
    for alarm in alarms or ():
        if not alarm.waves:
            notes.append(f"{alarm.requirement}: all waves are part of the reference, so none is tested yet")
        if not alarm.exact:
            notes.append(
                f"{alarm.requirement}: the bound on false alarms is proved for simple random and stratified "
                "samples; for the designs of these waves, it is an approximation"
            )
    return [*notes, *_evaluation_warnings(waves_with_labels(waves)[-1])]


def _label_notes(waves: Sequence[Wave]) -> list[str]:
    """Return notes on waves without labels, and on waves in which some drawn items have no label."""
    notes = []
    unlabelled = [wave.name for wave in waves if wave.evaluation is None]
    if unlabelled:
        notes.append(f"waves without labels, which are not part of any estimate: {', '.join(unlabelled)}")
    partial = []
    for wave in waves:
        row = next(iter(wave.rows.values()), None)
        if row is not None and row.labels < row.nonresponse.drawn:
            partial.append(f"{wave.name} ({row.labels:,} of {row.nonresponse.drawn:,})")
    if partial:
        notes.append(
            f"not all drawn items are labelled in {', '.join(partial)}; late labels change these estimates"
        )
    return notes


def _shared_item_notes(rows: Sequence[TrendRow]) -> list[str]:
    """Return notes on changes between waves that share labelled items."""
    notes = []
    changes = [row.estimate for row in rows if isinstance(row.estimate, Change)]
    if any(change.is_paired for change in changes):
        notes.append(
            "waves have the same labelled items: the interval is based on the difference for each item"
        )
    if any(change.correlation > 0 and not change.is_paired for change in changes):
        notes.append(
            "waves share labelled items: the standard error of a change accounts for this; intervals and "
            "p-values do not, so they are conservative"
        )
    if any(change.correlation < 0 and not change.is_paired for change in changes):
        notes.append(
            "waves share labelled items with a negative correlation: the interval of a change accounts for "
            "this"
        )
    return notes


def _evaluation_warnings(wave: Wave) -> list[str]:
    """Return the warnings of the evaluation of a wave, and its notes on recognised columns."""
    evaluation = wave.evaluation
    if evaluation is None:
        return []
    results = (evaluation.estimate, *evaluation.tables)
    texts = warnings_among(note for result in results for note in result.notes)
    for table in evaluation.tables:
        # The remarks state that a judge is worse in a group.
        if table.kind == "judge_groups":
            texts += table.remarks
    texts = list(dict.fromkeys(texts))
    if evaluation.table is not None:
        texts += evaluation.table.recognition.notes
    return [f"{wave.name}: {text}" for text in texts]


def _have_same_seed(waves: Sequence[Wave]) -> bool:
    """Return whether two waves without ids were drawn with the same seed."""
    samples = [wave.sample for wave in waves if wave.sample is not None]
    # Only samples that were drawn here have a digest, and a seed that selected their rows.
    seeds = [
        sample.seed
        for sample in samples
        if sample.question.row_base is not None and sample.digest is not None
    ]
    return len(set(seeds)) < len(seeds)


def waves_with_labels(waves: Sequence[Wave]) -> list[Wave]:
    """Return the waves that have labels."""
    return [wave for wave in waves if wave.evaluation is not None]
