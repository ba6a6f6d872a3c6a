"""Sections of a report, from which its HTML and its Markdown are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Any

from stratal.errors import list_first
from stratal.protocols import JsonDict, JsonMapping, JsonRows
from stratal.report import estimates
from stratal.report.pages import PAIR_COLUMNS
from stratal.report.text import (
    POINTS,
    Page,
    capitalise,
    interval_text,
    level_text,
    points_text,
    table_of,
    value_text,
    width_text,
)
from stratal.whole_numbers import COUNT_ROUNDING, rounded_down, rounded_up

FindingsDict = Mapping[str, Any]


# Largest number of ids that a page lists.
MAX_IDS = 20


def report_sections(findings: FindingsDict) -> list[Page]:
    """Return the sections of a report (`Findings.to_dict`); sections without content are omitted."""
    contents = {**findings, "sources": findings["method"]["references"]}
    sections = []
    if "estimate" in findings:
        sections = _estimate_sections(findings)
        contents["nonresponse"] = findings["estimate"]["nonresponse"]
        # A single stratum has no section.
        contents["strata"] = None
        if len(findings["strata"]) > 1:
            contents["strata"] = findings["strata"]
    for name, (title, make_content_section) in _SECTIONS.items():
        if contents.get(name):
            section = make_content_section(findings, contents[name])
            lines = list(section.lines)
            if name in _SINGLE_MODEL_SECTIONS and _compares_models(findings):
                lines = [f"For one model only: {findings['quantity']}.", *lines]
            sections.append(replace(section, title=title, name=name.replace("_", "-"), lines=lines))
    return sections


def _estimate_sections(findings: FindingsDict) -> list[Page]:
    """Return the sections with the answer and the tables of an estimate."""
    sections = [replace(_answer_section(findings), title="Answer", name="answer")]
    for kind, title in estimates.TABLES.items():
        if findings["estimate"].get(kind):
            make_section = _TABLE_SECTIONS.get(kind, partial(_table_section, kind=kind))
            section = make_section(findings)
            sections.append(replace(section, title=section.title or title, name=section.name or kind))
    return sections


def _compares_models(findings: FindingsDict) -> bool:
    """Return whether several models were compared, so that the estimate is that of one of them."""
    return bool(findings.get("estimate", {}).get("leaderboard"))


def _answer_section(findings: FindingsDict) -> Page:
    """Return the section with the answer, the warnings and the notes."""
    estimate = findings["estimate"]
    warnings = estimate.get("warnings", ())
    lines = []
    if findings.get("title") and findings.get("question"):
        lines.append(f"Question: {findings['question']}")
    lines += estimates.answer_sentences(findings)
    drawings = []
    if not _compares_models(findings):
        # Other sections and the answer contain these.
        in_other_sections = ("nonresponse", "effective_sample_size", "random_labels_of_equal_width", "judge")
        lines += estimates.sentences({**estimate, **dict.fromkeys(in_other_sections)})[1:]
        if estimate["confidence_interval"] is not None:
            row = {**estimate, "name": findings["quantity"], "reported": True}
            drawings.append(forest_drawing("estimate", row["name"], [row], findings["share"], margin=0.5))
    # Warnings follow the first line.
    lines[1:1] = [f"{capitalise(note)}." for note in warnings]
    notes = [f"{capitalise(note).removesuffix('.')}." for note in estimate["notes"] if note not in warnings]
    return Page(lines=lines, drawings=drawings, notes=notes)


def _table_section(findings: FindingsDict, kind: str) -> Page:
    """Return the section of a table of the estimate."""
    rows = findings["estimate"][kind]
    title = estimates.TABLES[kind]
    named_rows = []
    for row in rows:
        # The entries before the estimate identify the row, except `share`, which determines the unit.
        columns = list(row)
        names = [name for name in columns[: columns.index("estimate")] if name != "share"]
        parts = [str(row[name]) for name in names if row[name]]
        named_rows.append({**row, "name": " · ".join(parts)})
    drawing = forest_drawing(kind, title, named_rows, all(row.get("share") for row in rows))
    table = estimates.estimates_table(title, rows, findings["confidence_level"])
    return Page(drawings=[drawing], tables=[table])


# Largest number of judges with drawings; the tables contain all judges.
_MAX_JUDGES = 6

# Shares of a judge in the drawings and their labels.
_JUDGE_SHARES = {
    "agreement": "{judge} agrees with people",
    "recall": "finds {class!r}",
    "false_discovery_rate": "wrong if it answers {class!r}",
}

# Metrics of agreement beyond chance.
_CHANCE_CORRECTED_METRICS = ("kappa", "pearson", "spearman", "icc")


def _judge_section(findings: FindingsDict) -> Page:
    """Return the section on the accuracy of judges."""
    rows = findings["estimate"]["judge"]
    drawings = []
    for index, judge in enumerate([*estimates.by_judge(rows)][:_MAX_JUDGES]):
        shares = []
        for row in rows:
            if row["judge"] == judge and row["metric"] in _JUDGE_SHARES:
                name = _JUDGE_SHARES[row["metric"]].format(**row)
                shares.append({**row, "name": name, "reported": row["metric"] == "agreement"})
        if shares:
            drawings.append(forest_drawing(f"judge-{index}", f"{judge}: rates", shares, share=True))
    corrected = [
        {**row, "name": f"{row['judge']}: {row['metric']}"}
        for row in rows
        if row["metric"] in _CHANCE_CORRECTED_METRICS
    ]
    drawings.append(forest_drawing("kappas", "Beyond chance (1 is perfect)", corrected, share=False))
    return Page(
        lines=[
            *estimates.judge_sentences(rows, _MAX_JUDGES),
            "People's labels are assumed to be correct. The rates are estimates for all units, weighted by "
            "the design of the sample.",
        ],
        drawings=drawings,
        tables=estimates.judge_tables(rows, level_text(findings["confidence_level"])),
    )


def _models_section(findings: FindingsDict) -> Page:
    """Return the section of differences between models, with their ranks if they were ranked."""
    section = _table_section(findings, "comparisons")
    leaderboard = findings["estimate"].get("leaderboard")
    if not leaderboard:
        return section
    ranked_rows = [
        {**row, "name": f"{estimates.rank_text(row['rank'])} · {row['model']}", "estimate": row["mean"]}
        for row in leaderboard
    ]
    level = findings["confidence_level"]
    table = estimates.leaderboard_table(leaderboard, level, share=findings["share"], bars=False)
    return Page(
        title="Models",
        name="models",
        lines=[
            "The models, best first, on the same labels. A rank such as 1 to 3 is the range of ranks that "
            "the simultaneous intervals of all differences allow."
        ],
        drawings=[forest_drawing("models", "Models, best first", ranked_rows, findings["share"])],
        tables=[table, *section.tables],
    )


def _side_by_side_section(findings: FindingsDict, rows: JsonRows) -> Page:
    """Return the section that compares the reported estimate with other estimates from the same labels."""
    title = "Estimates side by side"
    share = findings["share"]

    def name_entry(row: JsonMapping) -> str:
        if row["reported"]:
            return f"{row['name']} (reported)"
        return str(row["name"])

    def interval_entry(row: JsonMapping) -> str | None:
        interval = row["confidence_interval"]
        if interval is None:
            return None
        return interval_text(interval, share)

    columns = {
        "reading": name_entry,
        "estimate": lambda row: value_text(row["estimate"], share),
        level_text(findings["confidence_level"]): interval_entry,
        "what it is": "what",
    }
    lines = [
        "The same labels, evaluated in several ways. The row 'with the design' is the estimate of this "
        "report. The others are for comparison."
    ]
    leaderboard = findings["estimate"].get("leaderboard") or ()
    reported = [row["estimate"] for row in rows if row["reported"]]
    if leaderboard and not {row["mean"] for row in leaderboard}.intersection(reported):
        lines = [
            "The same labels, evaluated in several ways. The comparison of the models above uses only the "
            "labels, so the mean given there may differ from the estimate with the proxy."
        ]
    return Page(
        lines=lines,
        drawings=[forest_drawing("side-by-side", title, rows, findings["share"])],
        tables=[table_of(title, rows, columns)],
        notes=findings.get("side_by_side_notes", ()),
    )


def _strata_section(findings: FindingsDict, strata: JsonRows) -> Page:
    """Return the section on the strata and the allocation of the labels."""
    share = findings["share"]
    columns = {
        "stratum": "name",
        "units": "size",
        "drawn": "drawn",
        "labelled": "n",
        "mean proxy": _value_column("proxy_mean", _is_share_of_proxy(strata, share)),
        "mean outcome": _value_column("mean", share),
        "sd": _deviation_column("standard_deviation", share),
    }
    rows = [{**row, "name": f"{position}. {row['name']}"} for position, row in enumerate(strata, 1)]
    n_drawn = sum(row["drawn"] for row in rows)
    n_units = sum(row["size"] for row in rows)
    # A proportional allocation differs from the exact shares by the rounding to whole labels.
    is_proportional = all(abs(row["drawn"] - n_drawn * row["size"] / n_units) <= 1 for row in rows)
    if is_proportional:
        allocation = "Each stratum has the same share of the labels as of the units."
    else:
        allocation = (
            "Some strata have a larger share of the labels than of the units, by the rule described in the "
            "Method section."
        )
    return Page(
        lines=[
            f"The population was divided into {len(rows):,} strata. {allocation} In the estimate, the "
            "weight of a stratum is its share of the units, regardless of its share of the labels."
        ],
        tables=[table_of("Strata", rows, columns)],
    )


def _value_column(key: str, share: bool) -> Callable[[JsonMapping], float | str | None]:
    """Return the entry of a row with a value, of a share in percent."""

    def entry(row: JsonMapping) -> float | str | None:
        value: float | None = row[key]
        if value is None or not share:
            return value
        return value_text(value, share)

    return entry


def _deviation_column(key: str, share: bool) -> Callable[[JsonMapping], float | str | None]:
    """Return the entry of a row with a standard deviation, of shares in percentage points."""

    def entry(row: JsonMapping) -> float | str | None:
        value: float | None = row.get(key)
        if value is None or not share:
            return value
        return f"{points_text(value).removeprefix('+')}{POINTS}"

    return entry


def _interval_column(key: str, share: bool) -> Callable[[JsonMapping], Any]:
    """Return the entry of a row with an interval, of a share in percent."""

    def entry(row: JsonMapping) -> Any:
        ends = row[key]
        if ends is None or not share:
            return ends
        return interval_text(ends, share)

    return entry


def _is_share_of_proxy(rows: JsonRows, share: bool) -> bool:
    """Return whether the means of a proxy are on the scale of the shares that it predicts."""
    means = [row["proxy_mean"] for row in rows if row.get("proxy_mean") is not None]
    return share and all(0 <= mean <= 1 for mean in means)


# A proxy that explains less than half a percent of the variance is not mentioned: it rounds to 0%.
_MAX_UNEXPLAINED_SHARE = 0.995


def _proxy_quality_lines(check: JsonMapping) -> list[str]:
    """Return the correlation of each proxy with the labels, and the share of variance that remains."""
    lines = [
        f"{row['proxy']!r} has a correlation of {row['correlation']:.2f} with the labels."
        for row in check["correlations"]
        if row["correlation"] is not None
    ]
    unexplained = check["left_open"]
    if unexplained is not None and unexplained < _MAX_UNEXPLAINED_SHARE:
        lines.append(
            f"In this estimate the proxy leaves {unexplained:.0%} of the variance of the labels unexplained."
        )
    return lines


def _bias_lines(check: JsonMapping, level: str, share: bool) -> list[str]:
    """Return the sentence on the mean difference of proxy and labels, if known; that of shares in points."""
    bias = check["bias"]
    if bias is None:
        return []
    low, high = bias["confidence_interval"]
    if low * high <= 0:
        limits = f"{_difference_text(low, share)} to {_difference_text(high, share)}"
        interval = f"{level} of the difference: {limits}, which includes 0"
    else:
        # The direction is stated in words, and the interval is that of the absolute difference.
        smaller, larger = sorted((abs(low), abs(high)))
        interval = f"{level} {_difference_text(smaller, share)} to {_difference_text(larger, share)}"
    difference = bias["estimate"]
    if difference > 0:
        direction = "above"
    else:
        direction = "below"
    size = width_text(abs(difference), share)
    return [
        f"On the labelled units, the weighted mean of the proxy is {size} {direction} that of the labels "
        f"({interval})."
    ]


def _difference_text(value: float, share: bool) -> str:
    """Return one end of the interval of a difference of proxy and labels, without the unit."""
    if share:
        return points_text(value)
    return f"{value:.2g}"


def _calibration_section(findings: FindingsDict, check: JsonMapping) -> Page:
    """Return the section that compares the proxy with the labels."""
    level = level_text(findings["confidence_level"])
    share = findings["share"]
    columns = {
        "proxy from": "from",
        "to": "to",
        "labels": "n",
        "mean proxy": _value_column("proxy_mean", _is_share_of_proxy(check["bins"], share)),
        "mean outcome": _value_column("outcome_mean", share),
        level: _interval_column("confidence_interval", share),
    }
    drawings = []
    # A single bin is no curve.
    if len(check["bins"]) > 1:
        drawings.append(calibration_drawing(check))
    return Page(
        lines=[
            f"Mean label and mean of the proxy {check['proxy']!r}, in groups of units with similar proxies. "
            "If the proxy is calibrated, the two means are equal. An inaccurate proxy makes the interval "
            "wider, but does not bias the estimate.",
            *_bias_lines(check, level, share),
            *_proxy_quality_lines(check),
        ],
        drawings=drawings,
        tables=[table_of("Proxy and labels", check["bins"], columns)],
    )


def _reliability_section(findings: FindingsDict, rows: JsonRows | None = None) -> Page:
    """Return the section of a calibration: the reliability curve of each score, and the table."""
    rows = rows or findings["estimate"]["calibration"]
    drawings: list[Drawing] = []
    for score in dict.fromkeys(row["score"] for row in rows):
        bins = [
            {
                # The text of a bin ends with its mean score.
                "proxy_mean": float(row["bin"].rpartition(" ")[2]),
                "outcome_mean": row["estimate"],
                "confidence_interval": row["confidence_interval"],
                "n": row["n"],
            }
            for row in rows
            if row["score"] == score and row["bin"]
        ]
        if len(bins) > 1:
            class_name = next(row["class"] for row in rows if row["score"] == score)
            if class_name is None:
                outcome = "share of right answers"
            else:
                outcome = f"share of {class_name}"
            drawing = calibration_drawing({"bins": bins}, f"mean {score}", outcome)
            drawings.append(
                replace(drawing, name=f"reliability-{len(drawings)}", title=f"Outcomes by {score}")
            )
    table = estimates.estimates_table("Calibration", rows, findings["confidence_level"])
    return Page(name="reliability", drawings=drawings, tables=[table])


def new_version_page(new: JsonMapping) -> Page:
    """Return the page of a new version (`NewVersion.to_dict`)."""
    versions = {"old": new["old"], "new": new["new"], "new minus old": new["difference"]}
    columns = {
        "": "name", "estimate": "estimate", "at worst": "lowest", "at best": "highest",
        level_text(new["confidence_level"]): "confidence_interval",
    }  # fmt: skip
    rows = [{"name": name, **version} for name, version in versions.items()]
    notes = [
        *_needed_lines("labels", new["needs_labels"]),
        *_needed_lines("new answers", new["needs_answers"]),
    ]
    return Page(lines=_new_version_lines(new), tables=[table_of("Old and new", rows, columns)], notes=notes)


def _new_version_lines(new: JsonMapping) -> list[str]:
    """Return the sentences on changed, missing and unknown answers of a new version."""
    blank = ""
    if new["blank"]:
        blank = f" ({new['blank']:,} of them are blank)"
    lines = [
        f"Of {new['units']:,} drawn units that the new version answered, {new['same']:,} have the same "
        f"answer and {new['changed']:,} have a different one{blank}."
    ]
    lines += [f"{capitalise(note)}." for note in new.get("warnings", ())]
    if new["missing"]:
        lines.append(
            f"{new['missing']:,} drawn units have no new answer, so the result of the new version is unknown "
            "for them."
        )
    if new["complete"]:
        lines.append("The existing labels suffice for the new version: no further labels are needed.")
    else:
        n_unknown = len(new["needs_labels"]) + len(new["needs_answers"])
        lines.append(
            f"Old version, new version and difference are estimated from {new['labelled']:,} labelled units. "
            f"For {n_unknown:,} of them, the new outcome is unknown. The lowest and the highest value assume "
            "that these outcomes are all as bad or as good as possible; the interval is valid for both, and "
            "for all cases between them."
        )
    return lines


def _needed_lines(kind: str, ids: Sequence[str]) -> list[str]:
    """Return the line that lists the units whose labels or answers are needed, if there are any."""
    if not ids:
        return []
    return [f"Need {kind}: {list_first(ids, MAX_IDS)}."]


def new_answers_page(evaluation: JsonMapping, title: str) -> Page:
    """Return the page of new answers with unknown outcomes: estimate, verdicts and required labels."""
    new = evaluation["new_version"]
    version = new["new"]
    share = bool(new["old"].get("share"))
    if version["estimate"] is not None:
        value = value_text(version["estimate"], share)
    else:
        value = f"between {value_text(version['lowest'], share)} and {value_text(version['highest'], share)}"
    ends = version["confidence_interval"]
    if ends is None:
        interval = "no interval"
    else:
        interval = f"{level_text(new['confidence_level'])} {interval_text(ends, share)}"
    page = new_version_page(new)
    lines = [f"{title}: {value} ({interval})", *estimates.verdict_lines(evaluation), *page.lines]
    return replace(page, lines=lines)


def _new_version_section(findings: FindingsDict, new: JsonMapping) -> Page:
    """Return the section that compares an old and a new version on the same labels."""
    rows = [{**new[key], "name": f"{key} version", "reported": key == "new"} for key in ("old", "new")]
    drawing = forest_drawing("versions", "Old and new version", rows, findings["share"])
    return replace(new_version_page(new), drawings=[drawing])


def _completeness_text(findings: FindingsDict, drawn: object) -> str:
    """Return the sentence that every unit of the sample has a label; rows of a table were not drawn."""
    if findings["provenance"].get("labelled rows") is None:
        return f"All {drawn:,} drawn units have a label."
    units = findings["estimate"]["population_size"]
    if drawn == units:
        return f"All {units:,} units have a label."
    without_label = f"{units - drawn:,} of {units:,} units have no label"
    return f"{without_label}, and the other {drawn:,} are taken as the sample."


def _nonresponse_section(findings: FindingsDict, counts: Mapping[str, object]) -> Page:
    """Return the section on drawn units without a label."""
    if not estimates.unlabelled(findings["estimate"]):
        return Page(lines=[_completeness_text(findings, counts["drawn"])])
    columns = {
        "stratum": "name",
        "drawn": "drawn",
        "labelled": "n",
        "share unlabelled": lambda row: (row["drawn"] - row["n"]) / row["drawn"],
    }
    rows = [row for row in findings["strata"] if row["drawn"] and row["n"] < row["drawn"]]
    return Page(
        lines=[
            estimates.missing_text(counts, share=findings["share"]),
            "Labels are not missing at random if units were left out because they are difficult.",
        ],
        tables=[table_of("By stratum", rows, columns)],
    )


def _agreement_section(_: FindingsDict, agreement: JsonMapping) -> Page:
    """Return the section on the agreement of annotators."""
    if agreement["alpha"] is None:
        alpha = "undefined"
    else:
        alpha = f"{agreement['alpha']:.3f}"
    lines = [
        f"Krippendorff's α ({agreement['level']}): {alpha}. 1 is perfect agreement, and 0 is "
        "agreement by chance."
    ]
    if agreement.get("units") is not None:
        lines.append(
            f"{len(agreement['annotators']):,} annotators gave {agreement['answers']:,} answers; "
            f"{agreement['shared']:,} of {agreement['units']:,} units have several answers. For "
            f"{agreement['open']:,} units, the answers differ without a decision; disagreements about "
            f"{agreement['decided']:,} units were decided."
        )
    tables = []
    pairs = agreement.get("pairs", ())
    if pairs:
        tables.append(table_of("Pairs", pairs, PAIR_COLUMNS | {"Cohen's κ": "kappa"}))
    return Page(lines=lines, tables=tables)


def _review_section(_: FindingsDict, rows: JsonRows) -> Page:
    """Return the section on labels that were replaced after a review."""
    n_changed = sum(row["first"].casefold() != row["now"].casefold() for row in rows)
    return Page(
        lines=[
            f"{len(rows):,} items were reviewed: the first label of {n_changed:,} of {len(rows):,} was "
            "wrong. The estimate uses the later labels."
        ],
        tables=[
            table_of("Reviewed labels", rows, {"item": "id", "first label": "first", "label now": "now"})
        ],
    )


def _more_labels_section(findings: FindingsDict, rows: JsonRows) -> Page:
    """Return the section on the expected width of the interval with more labels."""
    level = level_text(findings["confidence_level"])
    current = rows[0]
    last = rows[-1]
    share = findings["share"]
    columns: JsonDict = {
        "labels": "labels",
        f"width of the {level}": lambda row: width_text(2 * row["half_width"], share),
    }
    if last["half_width"] == 0:
        forecast = f"with all {last['labels']:,} labels the value is exact"
    else:
        width = width_text(2 * last["half_width"], share)
        forecast = f"with {last['labels']:,} labels it would be about {width} wide"
    current_width = width_text(2 * current["half_width"], share)
    return Page(
        lines=[
            f"With {current['labels']:,} labels the {level} is {current_width} wide; {forecast}.",
            "Forecast from the current labels, if each further round is allocated by the existing labels.",
        ],
        tables=[table_of("Expected widths", rows, columns)],
    )


def _method_section(_: FindingsDict, method: JsonMapping) -> Page:
    """Return the section on the method and its assumptions."""
    lines = [" ".join(method["sentences"]), "The result relies on these assumptions, which may not hold:"]
    return Page(lines=lines, notes=method["assumptions"])


def _provenance_section(_: FindingsDict, provenance: JsonMapping) -> Page:
    """Return the section with versions and commands."""
    versions = [
        f"{name} {value}" for name, value in provenance.items() if name != "commands" and value is not None
    ]
    return Page(
        lines=["The same sample and labels give the same results.", f"{capitalise(', '.join(versions))}."],
        commands=provenance["commands"],
    )


def _examples_section(_: FindingsDict, examples: JsonRows) -> Page:
    """Return the section of units for which proxy and label differ most."""
    lines = [
        "Units as the annotators saw them, starting with the largest differences between proxy and label."
    ]
    names = list(dict.fromkeys(name for row in examples for name in row))
    return Page(lines=lines, tables=[table_of("Examples", examples, names)])


# Function of each table of an estimate whose section has more than the table.
_TABLE_SECTIONS: dict[str, Callable[[FindingsDict], Page]] = {
    "comparisons": _models_section,
    "judge": _judge_section,
    "calibration": _reliability_section,
}

# Title and function of each section. Results come before the information that a reviewer checks.
_SECTIONS: dict[str, tuple[str, Callable[[FindingsDict, Any], Page]]] = {
    "new_version": ("The new version on the same labels", _new_version_section),
    "more_labels": ("Expected precision with more labels", _more_labels_section),
    "examples": ("Examples", _examples_section),
    "side_by_side": ("With and without the design", _side_by_side_section),
    "reliability": ("Calibration", _reliability_section),
    "calibration": ("Quality of the proxy", _calibration_section),
    "strata": ("Strata", _strata_section),
    "nonresponse": ("Units without a label", _nonresponse_section),
    "agreement": ("Agreement of the annotators", _agreement_section),
    "second_look": ("Review of labels", _review_section),
    "method": ("Method", _method_section),
    "sources": ("Sources", lambda _, references: Page(notes=references)),
    "provenance": ("To reproduce", _provenance_section),
}

# Sections that concern one model even if several models were compared.
_SINGLE_MODEL_SECTIONS = ("more_labels", "side_by_side", "calibration", "strata")


# Drawings are inline SVG, narrow enough for a phone. Colours are CSS classes of the style sheet, so that
# print and dark mode can change them, and shape or text shows the same as colour. Every drawing has a title,
# a description, and a table with the same content.


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear scale that maps `low` to the position `start`, and `high` to `end`."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def of(cls, values: Iterable[float | None], start: float, end: float) -> Scale:
        """Return the scale that contains all values other than None."""
        numbers = [float(value) for value in values if value is not None] or [0.0, 1.0]
        low = min(numbers)
        high = max(numbers)
        # The width of a scale is positive.
        if not high > low:
            low = low - 0.5
            high = high + 0.5
        return cls(low, high, start, end)

    def __call__(self, value: float) -> float:
        """Return the position of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ends(self, interval: Sequence[float | None]) -> list[float]:
        """Return the positions of the limits of an interval; None is the end of the scale."""
        low, high = interval
        positions = [self.start, self.end]
        if low is not None:
            positions[0] = self(low)
        if high is not None:
            positions[1] = self(high)
        return positions


def ticks(low: float, high: float, max_steps: int = 5) -> list[float]:
    """Return at most `max_steps` + 1 round numbers from `low` to `high`."""
    min_step = (high - low) / max_steps
    power = 10.0 ** math.floor(math.log10(min_step))
    # The smallest round step that is large enough.
    candidates = [power * factor for factor in (1, 2, 2.5, 5, 10)]
    step = next(candidate for candidate in candidates if candidate >= min_step * (1 - COUNT_ROUNDING))
    first = rounded_up(low / step)
    count = rounded_down(high / step) - first + 1
    digits = max(0, 2 - math.floor(math.log10(step)))
    # The sum with 0.0 turns −0.0 into 0.0.
    return [round((first + index) * step, digits) + 0.0 for index in range(count)]


# Width of a drawing in SVG units: the text is legible on a phone and not too large on a wide screen.
DRAWING_WIDTH = 440

_LEFT = 12.0
_RIGHT = DRAWING_WIDTH - 12.0

# Pixels: a line of text above the interval.
_ROW_HEIGHT = 40

# A longer drawing is not legible; the table has all rows.
_MAX_ROWS = 40
# Largest number of characters of a row's name, which leaves space for its values.
_NAME_LENGTH = 46

# `name`, `estimate`, `confidence_interval`, and optionally `reported` for the reported estimate.
ReportRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Drawing:
    """An SVG drawing and its description in words.

    Parameters
    ----------
    name : str
        Prefix of the ids of title and description.
    title : str
    description : str
        Content of the drawing for screen readers.
    height : float
    marks : sequence of str
        SVG elements.
    """

    name: str
    title: str
    description: str
    height: float
    marks: Sequence[str]

    def svg(self) -> str:
        """Return the SVG element."""
        title_id = f"{self.name}-title"
        description_id = f"{self.name}-description"
        return (
            f'<svg viewBox="0 0 {DRAWING_WIDTH} {self.height:g}" role="img" '
            f'aria-labelledby="{title_id} {description_id}">'
            f'<title id="{title_id}">{escape(self.title)}</title>'
            f'<desc id="{description_id}">{escape(self.description)}</desc>{"".join(self.marks)}</svg>'
        )


def forest_drawing(
    name: str, title: str, rows: Sequence[ReportRow], share: bool, *, margin: float = 0.0
) -> Drawing:
    """Return a drawing of intervals, one per row, with names and values above them.

    `margin` extends the scale on both sides, as a share of its width. The scale of a share stays within 0 and
    1.
    """
    if len(rows) > _MAX_ROWS:
        title = f"{title}: the first {_MAX_ROWS} of {len(rows):,}"
        rows = rows[:_MAX_ROWS]
    scale = _forest_scale(rows, share, margin)
    bottom = _ROW_HEIGHT * len(rows) + 8
    marks = [drawing_line(_LEFT, bottom, _RIGHT, bottom, "axis")]
    for tick in ticks(scale.low, scale.high):
        x = scale(tick)
        marks += [
            drawing_line(x, 0, x, bottom, "grid"),
            drawing_text(x, bottom + 15, tick_text(tick, share), "tick", "middle"),
        ]
    for index, row in enumerate(rows):
        marks += _row_marks(row, scale, _ROW_HEIGHT * index + 28, share)
    description = "; ".join(f"{row['name']}: {_row_text(row, share)}" for row in rows)
    return Drawing(name, title, description, _ROW_HEIGHT * len(rows) + 30, marks)


def _forest_scale(rows: Sequence[ReportRow], share: bool, margin: float) -> Scale:
    """Return the horizontal scale that contains all values and limits, extended by a margin."""
    values = [value for row in rows for value in (row["estimate"], *(row["confidence_interval"] or ()))]
    numbers = [float(value) for value in values if value is not None]
    ends: list[float] = []
    if numbers:
        low = min(numbers)
        high = max(numbers)
        extension = margin * (high - low)
        ends = [low - extension, high + extension]
        if share and low >= 0 and high <= 1:
            ends = [max(ends[0], 0.0), min(ends[1], 1.0)]
    # The marks of the limits have a width.
    return Scale.of(ends, _LEFT + 6, _RIGHT - 6)


def _row_marks(row: ReportRow, scale: Scale, y: float, share: bool) -> list[str]:
    """Return the SVG elements of a row: name, value, interval and dot."""
    kind = "other"
    name_style = "name"
    radius = 4
    if row.get("reported"):
        kind = "reported"
        name_style = "name strong"
        radius = 5
    marks = [
        drawing_text(_LEFT, y - 14, _shorten(row["name"]), name_style),
        drawing_text(_RIGHT, y - 14, _row_text(row, share), "value", "end"),
    ]
    if row["confidence_interval"] is not None:
        low, high = scale.ends(row["confidence_interval"])
        marks.append(drawing_line(low, y, high, y, f"range {kind}"))
        marks += [drawing_line(x, y - 4, x, y + 4, f"range {kind}") for x in (low, high)]
    if row["estimate"] is not None:
        marks.append(_dot(scale(row["estimate"]), y, kind, radius))
    return marks


def _shorten(name: str) -> str:
    """Return a name whose middle is replaced by an ellipsis if it is too long."""
    if len(name) <= _NAME_LENGTH:
        return name
    return f"{name[: _NAME_LENGTH // 2 - 1]}…{name[-(_NAME_LENGTH // 2) :]}"


def _row_text(row: ReportRow, share: bool) -> str:
    """Return the value and the interval of a row as text; one of them may be missing."""
    interval = row["confidence_interval"]
    if interval is None:
        return value_text(row["estimate"], share)
    if row["estimate"] is None:
        return interval_text(interval, share)
    return f"{value_text(row['estimate'], share)} ({interval_text(interval, share)})"


def calibration_drawing(
    check: JsonMapping, x_title: str = "mean proxy", y_title: str = "mean outcome"
) -> Drawing:
    """Return a drawing of mean labels by mean proxies, with their intervals and the diagonal."""
    rows = [row for row in check["bins"] if row["outcome_mean"] is not None]
    values = [
        float(value)
        for row in rows
        for value in (row["proxy_mean"], row["outcome_mean"], *(row["confidence_interval"] or ()))
        if value is not None
    ]
    ends = rounded_ends(values)
    x_scale = Scale.of(ends, PLOT_LEFT, _PLOT_RIGHT)
    y_scale = Scale.of(ends, _PLOT_BOTTOM, PLOT_TOP)
    marks = plot_axes(x_scale, y_scale, x_title, y_title)
    marks.append(drawing_line(x_scale.start, y_scale.start, x_scale.end, y_scale.end, "diagonal"))
    for row in rows:
        x = x_scale(row["proxy_mean"])
        if row["confidence_interval"] is not None:
            y_low, y_high = y_scale.ends(row["confidence_interval"])
            marks.append(drawing_line(x, y_low, x, y_high, "range reported"))
        marks.append(_dot(x, y_scale(row["outcome_mean"])))
    descriptions = [
        f"{x_title} {row['proxy_mean']:.3f}: {y_title} {row['outcome_mean']:.3f} ({row['n']:,} labels)"
        for row in rows
    ]
    return Drawing("calibration-curve", "Labels by proxy", "; ".join(descriptions), _PLOT_BOTTOM + 44, marks)


# Area of a plot with two axes in SVG units, with space for the labels of the axes.
PLOT_LEFT = 54
PLOT_TOP = 12
_PLOT_RIGHT = 310
_PLOT_BOTTOM = 262


def rounded_ends(values: Sequence[float]) -> list[float]:
    """Return the ends of an axis: the nearest ticks that enclose the values."""
    scale = Scale.of(values, 0, 1)
    first, second, *_ = ticks(scale.low, scale.high)
    step = second - first
    return [
        rounded_down(scale.low / step) * step,
        rounded_up(scale.high / step) * step,
    ]


def plot_axes(
    x_scale: Scale,
    y_scale: Scale,
    x_title: str,
    y_title: str,
    *,
    share: bool = False,
    title_offset: float = 36,
) -> list[str]:
    """Return the SVG elements of two axes with ticks, a grid and titles; shares are in percent."""
    middle = 0.5 * (y_scale.start + y_scale.end)
    marks = []
    for tick in ticks(y_scale.low, y_scale.high):
        y = y_scale(tick)
        marks.append(drawing_line(x_scale.start, y, x_scale.end, y, "grid"))
        marks.append(drawing_text(x_scale.start - 6, y + 4, tick_text(tick, share), "tick", "end"))
    return [
        *marks,
        *(
            drawing_text(x_scale(tick), y_scale.start + 16, tick_text(tick, share), "tick", "middle")
            for tick in ticks(x_scale.low, x_scale.high)
        ),
        drawing_line(x_scale.start, y_scale.start, x_scale.end, y_scale.start, "axis"),
        drawing_line(x_scale.start, y_scale.start, x_scale.start, y_scale.end, "axis"),
        drawing_text(
            0.5 * (x_scale.start + x_scale.end), y_scale.start + title_offset, x_title, "name", "middle"
        ),
        f'<text x="12" y="{middle:g}" class="name" text-anchor="middle" '
        f'transform="rotate(-90 12 {middle:g})">{escape(y_title)}</text>',
    ]


def tick_text(tick: float, share: bool) -> str:
    """Return the label of a tick, in percent for shares."""
    if share:
        return f"{100 * tick:.6g}%"
    return f"{tick:g}"


def _dot(x: float, y: float, kind: str = "reported", radius: int = 4) -> str:
    """Return the SVG element of a dot with a CSS class."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="mark {kind}"/>'


def drawing_line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return the SVG element of a line with a CSS class."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def drawing_text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    """Return the SVG element of a text with a CSS class."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'
