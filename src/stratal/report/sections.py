"""Sections of a report, from which its HTML and its Markdown are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from stratal.errors import list_first
from stratal.protocols import JsonDict, JsonMapping, JsonRows
from stratal.report import estimates, judges
from stratal.report.drawings import Drawing, calibration_drawing, forest_drawing
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

# `Findings.to_dict()`, or the dict of a report with only an accepted set.
FindingsDict = Mapping[str, Any]

# Largest number of ids that a page lists.
MAX_IDS = 20


def report_sections(findings: FindingsDict) -> list[Page]:
    """Return the sections of a report; sections without content are omitted."""
    # Content by the names of `_SECTIONS`.
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
        # The answer and other sections contain the sentences on these.
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
        key_columns = [name for name in columns[: columns.index("estimate")] if name != "share"]
        keys = [str(row[name]) for name in key_columns if row[name]]
        named_rows.append({**row, "name": " · ".join(keys)})
    drawing = forest_drawing(kind, title, named_rows, all(row.get("share") for row in rows))
    table = estimates.estimates_table(title, rows, findings["confidence_level"])
    return Page(drawings=[drawing], tables=[table])


# Largest number of judges with drawings and sentences; the tables contain all judges.
_MAX_JUDGES = 6

# Names of the rows in the drawing of a judge's rates, by metric.
_JUDGE_RATES = {
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
    for index, judge in enumerate([*judges.rows_by_judge(rows)][:_MAX_JUDGES]):
        rates = []
        for row in rows:
            if row["judge"] == judge and row["metric"] in _JUDGE_RATES:
                name = _JUDGE_RATES[row["metric"]].format(**row)
                rates.append({**row, "name": name, "reported": row["metric"] == "agreement"})
        if rates:
            drawings.append(forest_drawing(f"judge-{index}", f"{judge}: rates", rates, is_share=True))
    corrected = [
        {**row, "name": f"{row['judge']}: {row['metric']}"}
        for row in rows
        if row["metric"] in _CHANCE_CORRECTED_METRICS
    ]
    drawings.append(forest_drawing("kappas", "Beyond chance (1 is perfect)", corrected, is_share=False))
    return Page(
        lines=[
            *judges.judge_sentences(rows, _MAX_JUDGES),
            "People's labels are assumed to be correct. The rates are estimates for all units, weighted by "
            "the design of the sample.",
        ],
        drawings=drawings,
        tables=judges.judge_tables(rows, level_text(findings["confidence_level"])),
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
    table = estimates.leaderboard_table(leaderboard, level, is_share=findings["share"], bars=False)
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
    is_share = findings["share"]

    def name_entry(row: JsonMapping) -> str:
        if row["reported"]:
            return f"{row['name']} (reported)"
        return str(row["name"])

    def interval_entry(row: JsonMapping) -> str | None:
        interval = row["confidence_interval"]
        if interval is None:
            return None
        return interval_text(interval, is_share)

    columns = {
        "reading": name_entry,
        "estimate": lambda row: value_text(row["estimate"], is_share),
        level_text(findings["confidence_level"]): interval_entry,
        "what it is": "what",
    }
    lines = [
        "The same labels, evaluated in several ways. The row 'with the design' is the estimate of this "
        "report. The others are for comparison."
    ]
    leaderboard = findings["estimate"].get("leaderboard") or ()
    reported_values = [row["estimate"] for row in rows if row["reported"]]
    if leaderboard and not {row["mean"] for row in leaderboard}.intersection(reported_values):
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
    is_share = findings["share"]
    columns = {
        "stratum": "name",
        "units": "size",
        "drawn": "drawn",
        "labelled": "n",
        "mean proxy": _value_column("proxy_mean", _are_proxy_shares(strata, is_share)),
        "mean outcome": _value_column("mean", is_share),
        "sd": _deviation_column("standard_deviation", is_share),
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


def _value_column(key: str, is_share: bool) -> Callable[[JsonMapping], float | str | None]:
    """Return a function of a row that returns its value; that of a share as text in percent."""

    def entry(row: JsonMapping) -> float | str | None:
        value: float | None = row[key]
        if value is None or not is_share:
            return value
        return value_text(value, is_share)

    return entry


def _deviation_column(key: str, is_share: bool) -> Callable[[JsonMapping], float | str | None]:
    """Return a function of a row that returns its standard deviation; that of shares as text in points."""

    def entry(row: JsonMapping) -> float | str | None:
        value: float | None = row.get(key)
        if value is None or not is_share:
            return value
        return f"{points_text(value).removeprefix('+')}{POINTS}"

    return entry


def _interval_column(key: str, is_share: bool) -> Callable[[JsonMapping], Any]:
    """Return a function of a row that returns its interval; that of a share as text in percent."""

    def entry(row: JsonMapping) -> Any:
        ends = row[key]
        if ends is None or not is_share:
            return ends
        return interval_text(ends, is_share)

    return entry


def _are_proxy_shares(rows: JsonRows, is_share: bool) -> bool:
    """Return whether the means of a proxy are shares: outcomes are, and all means lie between 0 and 1."""
    means = [row["proxy_mean"] for row in rows if row.get("proxy_mean") is not None]
    return is_share and all(0 <= mean <= 1 for mean in means)


# A proxy that explains less than half a percent of the variance is not mentioned: it rounds to 0%.
_MAX_UNEXPLAINED_SHARE = 0.995


def _proxy_quality_lines(check: JsonMapping) -> list[str]:
    """Return sentences on the correlation of each proxy with the labels, and the unexplained variance."""
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


def _bias_lines(check: JsonMapping, level: str, is_share: bool) -> list[str]:
    """Return the sentence on the mean difference of proxy and labels, in points for shares; [] if unknown."""
    bias = check["bias"]
    if bias is None:
        return []
    low, high = bias["confidence_interval"]
    if low * high <= 0:
        limits = f"{_difference_limit_text(low, is_share)} to {_difference_limit_text(high, is_share)}"
        interval = f"{level} of the difference: {limits}, which includes 0"
    else:
        # The interval is that of the absolute difference: the sentence states the direction.
        smaller, larger = sorted((abs(low), abs(high)))
        limits = f"{_difference_limit_text(smaller, is_share)} to {_difference_limit_text(larger, is_share)}"
        interval = f"{level} {limits}"
    difference = bias["estimate"]
    if difference > 0:
        direction = "above"
    else:
        direction = "below"
    size = width_text(abs(difference), is_share)
    return [
        f"On the labelled units, the weighted mean of the proxy is {size} {direction} that of the labels "
        f"({interval})."
    ]


def _difference_limit_text(value: float, is_share: bool) -> str:
    """Return one end of the interval of a difference of proxy and labels, without the unit."""
    if is_share:
        return points_text(value)
    return f"{value:.2g}"


def _calibration_section(findings: FindingsDict, check: JsonMapping) -> Page:
    """Return the section that compares the proxy with the labels."""
    level = level_text(findings["confidence_level"])
    is_share = findings["share"]
    columns = {
        "proxy from": "from",
        "to": "to",
        "labels": "n",
        "mean proxy": _value_column("proxy_mean", _are_proxy_shares(check["bins"], is_share)),
        "mean outcome": _value_column("outcome_mean", is_share),
        level: _interval_column("confidence_interval", is_share),
    }
    drawings = []
    # A single bin is no curve.
    if len(check["bins"]) > 1:
        drawings.append(calibration_drawing(check["bins"]))
    return Page(
        lines=[
            f"Mean label and mean of the proxy {check['proxy']!r}, in groups of units with similar proxies. "
            "If the proxy is calibrated, the two means are equal. An inaccurate proxy makes the interval "
            "wider, but does not bias the estimate.",
            *_bias_lines(check, level, is_share),
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
        rows_of_score = [row for row in rows if row["score"] == score]
        drawing = _reliability_drawing(score, rows_of_score)
        if drawing is not None:
            drawings.append(replace(drawing, name=f"reliability-{len(drawings)}"))
    table = estimates.estimates_table("Calibration", rows, findings["confidence_level"])
    return Page(name="reliability", drawings=drawings, tables=[table])


def _reliability_drawing(score: str, rows: JsonRows) -> Drawing | None:
    """Return the reliability curve of a score; None if it has fewer than two bins."""
    bins = [
        {
            # The text of a bin ends with its mean score.
            "proxy_mean": float(row["bin"].rpartition(" ")[2]),
            "outcome_mean": row["estimate"],
            "confidence_interval": row["confidence_interval"],
            "n": row["n"],
        }
        for row in rows
        if row["bin"]
    ]
    if len(bins) < 2:
        return None
    class_name = rows[0]["class"]
    outcome = "share of right answers"
    if class_name is not None:
        outcome = f"share of {class_name}"
    return replace(calibration_drawing(bins, f"mean {score}", outcome), title=f"Outcomes by {score}")


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
    blank_text = ""
    if new["blank"]:
        blank_text = f" ({new['blank']:,} of them are blank)"
    lines = [
        f"Of {new['units']:,} drawn units that the new version answered, {new['same']:,} have the same "
        f"answer and {new['changed']:,} have a different one{blank_text}."
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
    new_estimate = new["new"]
    is_share = bool(new["old"].get("share"))
    if new_estimate["estimate"] is not None:
        value = value_text(new_estimate["estimate"], is_share)
    else:
        lowest = value_text(new_estimate["lowest"], is_share)
        highest = value_text(new_estimate["highest"], is_share)
        value = f"between {lowest} and {highest}"
    ends = new_estimate["confidence_interval"]
    if ends is None:
        interval = "no interval"
    else:
        interval = f"{level_text(new['confidence_level'])} {interval_text(ends, is_share)}"
    page = new_version_page(new)
    lines = [f"{title}: {value} ({interval})", *estimates.verdict_lines(evaluation), *page.lines]
    return replace(page, lines=lines)


def _new_version_section(findings: FindingsDict, new: JsonMapping) -> Page:
    """Return the section that compares an old and a new version on the same labels."""
    rows = [{**new[key], "name": f"{key} version", "reported": key == "new"} for key in ("old", "new")]
    drawing = forest_drawing("versions", "Old and new version", rows, findings["share"])
    return replace(new_version_page(new), drawings=[drawing])


def _completeness_text(findings: FindingsDict, drawn: int) -> str:
    """Return the sentence that all units of the sample have labels, which may be rows of a table."""
    if findings["provenance"].get("labelled rows") is None:
        return f"All {drawn:,} drawn units have a label."
    units = findings["estimate"]["population_size"]
    if drawn == units:
        return f"All {units:,} units have a label."
    without_label = f"{units - drawn:,} of {units:,} units have no label"
    return f"{without_label}, and the other {drawn:,} are taken as the sample."


def _nonresponse_section(findings: FindingsDict, counts: JsonMapping) -> Page:
    """Return the section on drawn units without a label."""
    if not estimates.n_unlabelled(findings["estimate"]):
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
            estimates.missing_text(counts, is_share=findings["share"]),
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
    is_share = findings["share"]
    columns: JsonDict = {
        "labels": "labels",
        f"width of the {level}": lambda row: width_text(2 * row["half_width"], is_share),
    }
    if last["half_width"] == 0:
        forecast = f"with all {last['labels']:,} labels the value is exact"
    else:
        width = width_text(2 * last["half_width"], is_share)
        forecast = f"with {last['labels']:,} labels it would be about {width} wide"
    current_width = width_text(2 * current["half_width"], is_share)
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


# Functions of the tables of an estimate whose sections have more than the table.
_TABLE_SECTIONS: dict[str, Callable[[FindingsDict], Page]] = {
    "comparisons": _models_section,
    "judge": _judge_section,
    "calibration": _reliability_section,
}

# Title and function of each section by its key in the findings. Results come before the information that a
# reviewer checks.
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
