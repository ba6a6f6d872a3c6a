"""A report as a sequence of sections: the one content that HTML, Markdown, LaTeX and text are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stratal.report.drawings import (
    Drawing,
    calibration_drawing,
    forest_drawing,
    strata_drawing,
    width_drawing,
)
from stratal.report.estimates import (
    TABLES,
    answer_sentence,
    estimate_page,
    estimates_table,
    leaderboard_table,
    rank_text,
    value_text,
    worst_text,
)
from stratal.report.text import MOST_STRATA, Page, Table, filled, first_rows, level_text, noted, number

Findings = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of a report.

    Parameters
    ----------
    title : str
    name : str
        Its address within the page.
    lines : sequence of str
        Paragraphs.
    drawings : sequence of Drawing
    tables : sequence of Table
    points : sequence of str
        A list below them.
    commands : sequence of str
        Lines to type.

    Examples
    --------
    >>> Section(title="Method", name="method").lines
    ()
    """

    title: str
    name: str
    lines: Sequence[str] = ()
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()
    points: Sequence[str] = ()
    commands: Sequence[str] = ()


MOST_IDS = 20


def new_version_page(new: Mapping[str, Any]) -> Page:
    """Return what is said of a new version (`NewVersion.to_dict`).

    Examples
    --------
    >>> span = {"estimate": 0.5, "lowest": 0.5, "highest": 0.5, "confidence_interval": [0.4, 0.6]}
    >>> new = {"units": 20, "labelled": 20, "missing": 0, "same": 15, "changed": 5, "blank": 0, "known": 20,
    ...        "complete": True, "confidence_level": 0.95, "old": span, "new": span, "difference": span,
    ...        "needs_labels": [], "needs_answers": []}
    >>> new_version_page(new).lines[1]
    'The labels that you have settle the new version too: nothing has to be labelled.'
    """
    return Page(
        lines=_sentences(new),
        tables=[
            Table(
                title="Old and new",
                header=("", "estimate", "at worst", "at best", level_text(new["confidence_level"])),
                rows=[
                    [
                        name,
                        *(
                            new[key][part]
                            for part in ("estimate", "lowest", "highest", "confidence_interval")
                        ),
                    ]
                    for name, key in (("old", "old"), ("new", "new"), ("new minus old", "difference"))
                ],
            )
        ],
        notes=_needs(new),
    )


def _sentences(new: Mapping[str, Any]) -> list[str]:
    blank = f", of these {new['blank']:,} none at all (blank)" if new["blank"] else ""
    lines = [
        f"Of {new['units']:,} drawn units that the new version answered, {new['same']:,} have the same "
        f"answer and {new['changed']:,} another{blank}."
    ]
    if new["missing"]:
        lines.append(
            f"{new['missing']:,} drawn units do not occur among the new answers: what the new version says "
            "of them is not known."
        )
    if new["complete"]:
        lines.append("The labels that you have settle the new version too: nothing has to be labelled.")
        return lines
    unknown = len(new["needs_labels"]) + len(new["needs_answers"])
    lines.append(
        f"Of the {new['labelled']:,} labelled units, on which old, new and difference all rest, {unknown:,} "
        "have no known new outcome. At worst and at best these are all as bad or as good as they can be; the "
        "interval holds for both, and for everything between."
    )
    return lines


def _needs(new: Mapping[str, Any]) -> list[str]:
    found = []
    for title, wanted in (("labels", new["needs_labels"]), ("new answers", new["needs_answers"])):
        more = f" and {len(wanted) - MOST_IDS:,} more" if len(wanted) > MOST_IDS else ""
        found += [f"Need {title}: {', '.join(wanted[:MOST_IDS])}{more}."] if wanted else []
    return found


PERCENT = ("comparisons", "domains")
"""Rows that are shares where the estimate is; the others may each be something else."""


def tables_sections(found: Findings) -> list[Section]:
    """Return a section for each table that the estimate's dict carries."""
    return [
        _models(found) if kind == "comparisons" else _table(found, kind)
        for kind in TABLES
        if found["estimate"].get(kind)
    ]


def _table(found: Findings, kind: str) -> Section:
    rows, title = found["estimate"][kind], TABLES[kind]
    marks = [(_named(row), row["estimate"], row["confidence_interval"], False) for row in rows]
    share = found["share"] and kind in PERCENT
    return Section(
        title=title,
        name=kind,
        drawings=[forest_drawing(kind, title, marks, {**found, "share": share})],
        tables=[estimates_table(title, rows, found["confidence_level"], None)],
    )


def _named(row: Mapping[str, Any]) -> str:
    """Return a row's name: what its label says, which stands before its estimate."""
    label = list(row)[: list(row).index("estimate")]
    return " · ".join(str(row[name]) for name in label if row[name])


def _models(found: Findings) -> Section:
    """Return the section of differences, with the models' ranks where there are any."""
    section = _table(found, "comparisons")
    board = found["estimate"].get("leaderboard")
    if not board:
        return section
    rows = [
        (f"{rank_text(row['rank'])} · {row['model']}", row["mean"], row["confidence_interval"], False)
        for row in board
    ]
    table = leaderboard_table(board, found["confidence_level"])
    without_bars = Table(
        title=table.title,
        header=[*table.header[:4], *table.header[5:]],
        rows=[[*row[:4], *row[5:]] for row in table.rows],
    )
    return Section(
        title="Models",
        name="models",
        lines=[
            "Models from the best, on the same labels. A rank such as 1 to 3 is the band of ranks that the "
            "simultaneous intervals of all differences leave open."
        ],
        drawings=[forest_drawing("models", "Models from the best", rows, found)],
        tables=[without_bars, *section.tables],
    )


def new_version_section(found: Findings) -> Section | None:
    """Return the section of an old and a new version on the same labels."""
    new = found.get("new_version")
    if new is None:
        return None
    page = new_version_page(new)
    rows = [
        (name, new[key]["estimate"], new[key]["confidence_interval"], key == "new")
        for name, key in (("old version", "old"), ("new version", "new"))
    ]
    return Section(
        title="The new version on the same labels",
        name="new-version",
        lines=page.lines,
        drawings=[forest_drawing("versions", "Old and new version", rows, found)],
        tables=page.tables,
        points=page.notes,
    )


MOST_ROWS = 300
"""Rows of a table, so that a report stays one page of less than a megabyte."""


def report_sections(findings: Findings) -> list[Section]:
    """Return the sections of a report (of `Findings.to_dict`); those without content are left out.

    Examples
    --------
    >>> report_sections.__name__
    'report_sections'
    """
    makers = (
        _beside,
        _strata,
        _calibration,
        new_version_section,
        _nonresponse,
        _agreement,
        _more_labels,
        _method,
        _sources,
        _again,
        _examples,
    )
    more = [section for make in makers if (section := make(findings)) is not None]
    found = [_answer(findings), *tables_sections(findings), *more]
    return [replace(section, tables=[*map(_shortened, section.tables)]) for section in found]


def _compared(found: Findings) -> bool:
    """Return whether several models were compared, so that the estimate is of one of them."""
    return bool(found["estimate"].get("leaderboard"))


def _of_one(found: Findings) -> list[str]:
    """Return what a section is about, where the answer is about several models."""
    return [f"Of one model alone: {found['quantity']}."] if _compared(found) else []


def _shortened(table: Table) -> Table:
    """Return the first rows of a long table without its empty columns, and how many there are more."""
    table, more = filled(table), len(table.rows) - MOST_ROWS
    if more <= 0:
        return table
    last = [f"… and {more:,} more; the report as .json has all", *[""] * (len(table.header) - 1)]
    return replace(table, rows=[*table.rows[:MOST_ROWS], last])


def _answer(found: Findings) -> Section:
    estimate = found["estimate"]
    asked = found.get("question") if found.get("title") else None
    question = f"Question: {asked}" if asked else ""
    without = {"strata": (), "nonresponse": None}
    without |= dict.fromkeys(("effective_sample_size", "random_labels_of_equal_width"))
    facts = [] if _compared(found) else list(estimate_page({**estimate, **without}).lines[1:])
    return Section(
        title="Answer",
        name="answer",
        lines=[line for line in (question, answer_sentence(found), *facts) if line],
        points=noted(estimate["notes"]),
    )


def _beside(found: Findings) -> Section | None:
    rows, level = found["side_by_side"], level_text(found["confidence_level"])
    if not rows:
        return None
    drawn = [(row["name"], row["estimate"], row["confidence_interval"], row["reported"]) for row in rows]
    return Section(
        title="With and without the design",
        name="side-by-side",
        lines=[
            *_of_one(found),
            "The same labels, read in several ways. Only the reported one takes account of how the units "
            "were drawn and of what the proxy knows; the others show what that changes.",
        ],
        drawings=[forest_drawing("side-by-side", "Estimates side by side", drawn, found)],
        tables=[
            Table(
                title="Estimates side by side",
                header=("reading", "estimate", level, "what it is"),
                rows=[
                    [
                        row["name"] + (" (reported)" if row["reported"] else ""),
                        *(row[name] for name in ("estimate", "confidence_interval", "what")),
                    ]
                    for row in rows
                ],
            )
        ],
        points=found.get("side_by_side_notes", ()),
    )


def _strata(found: Findings) -> Section | None:
    rows = found["strata"]
    if len(rows) < 2:
        return None
    names = ("name", "size", "drawn", "n", "proxy_mean", "mean", "standard_deviation")
    return Section(
        title="Strata",
        name="strata",
        lines=[
            *_of_one(found),
            f"The population was divided into {len(rows):,} strata. {_shares(rows)} Each counts by its share "
            "of the units, whatever its share of the labels.",
        ],
        drawings=[strata_drawing(rows)],
        tables=[
            Table(
                title="Strata",
                header=("stratum", "units", "drawn", "labelled", "mean proxy", "mean outcome", "sd"),
                rows=first_rows([[row[name] for name in names] for row in rows], MOST_STRATA, "strata"),
            )
        ],
    )


def _shares(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how labels were shared among strata: as the units are, to a label, or in another way."""
    drawn, units = (sum(row[name] for row in rows) for name in ("drawn", "size"))
    if all(abs(row["drawn"] - drawn * row["size"] / units) <= 1 for row in rows):
        return "Each has its share of the labels."
    return "Some have a larger share of the labels than of the units, by the rule that is named under Method."


def _calibration(found: Findings) -> Section | None:
    check = found.get("calibration")
    if check is None:
        return None
    level = level_text(found["confidence_level"])
    names = ("from", "to", "n", "proxy_mean", "outcome_mean", "confidence_interval")
    bias = check["bias"]
    said = ""
    if bias is not None:
        direction = "above" if bias["estimate"] > 0 else "below"
        low, high = bias["confidence_interval"]
        ends = sorted((abs(low), abs(high)))
        sure = low * high > 0
        said = f"On average the proxy lies {number(abs(bias['estimate']))} {direction} the labels" + (
            f" ({level} {number(ends[0])} to {number(ends[1])})."
            if sure
            else f" ({level} of the difference {number(low)} to {number(high)}: it may be none)."
        )
    return Section(
        title="Calibration of the proxy",
        name="calibration",
        lines=[
            *_of_one(found),
            f"What the proxy {check['proxy']!r} said beside what people said, in groups of units with "
            "similar proxies. A calibrated proxy lies on the diagonal. The estimate does not need it to: a "
            "proxy that is off makes the interval wider, not the estimate wrong.",
            *([said] if said else []),
        ],
        drawings=[calibration_drawing(check)] if len(check["bins"]) > 1 else [],
        tables=[
            Table(
                title="Proxy and labels",
                header=("proxy from", "to", "labels", "mean proxy", "mean outcome", level),
                rows=[[row[name] for name in names] for row in check["bins"]],
            )
        ],
    )


def _nonresponse(found: Findings) -> Section | None:
    counts = found["estimate"]["nonresponse"]
    if counts is None:
        return None
    missing = counts["drawn"] - counts["labelled"]
    if not missing:
        lines = [f"All {counts['drawn']:,} drawn units have a label."]
        return Section(title="Units without a label", name="nonresponse", lines=lines)
    rows = [
        [row["name"], row["drawn"], row["n"], (row["drawn"] - row["n"]) / row["drawn"]]
        for row in found["strata"]
        if row["drawn"] and row["n"] < row["drawn"]
    ]
    return Section(
        title="Units without a label",
        name="nonresponse",
        lines=[
            f"{missing:,} of {counts['drawn']:,} drawn units have no label ({counts['rate']:.1%}). The "
            "labelled units of their stratum stand for them: this is right if those that were left out are "
            "like the others of their stratum (missing at random), and wrong if they were left out because "
            f"they are hard.{worst_text(counts)}"
        ],
        tables=[
            Table(
                title="By stratum",
                header=("stratum", "drawn", "labelled", "share unlabelled"),
                rows=first_rows(rows, MOST_STRATA, "strata"),
            )
        ],
    )


def _agreement(found: Findings) -> Section | None:
    seen = found.get("agreement")
    if seen is None:
        return None
    alpha = "undefined" if seen["alpha"] is None else f"{seen['alpha']:.3f}"
    lines = [f"Krippendorff's α ({seen['level']}): {alpha}. 1 is perfect agreement, 0 what chance gives."]
    if seen.get("units") is not None:
        lines.append(
            f"{len(seen['annotators']):,} annotators gave {seen['answers']:,} answers; {seen['shared']:,} of "
            f"{seen['units']:,} units have several. Of {seen['open']:,} units the answers differ and nobody "
            f"has decided; {seen['decided']:,} were decided."
        )
    rows = [
        [f"{pair['first']}, {pair['second']}", pair["shared"], pair["agreeing"], pair["kappa"]]
        for pair in seen.get("pairs", ())
    ]
    table = Table(title="Pairs", header=("pair", "shared", "agreeing", "Cohen's κ"), rows=rows)
    return Section(
        title="Agreement of the annotators", name="agreement", lines=lines, tables=[table] if rows else []
    )


def _more_labels(found: Findings) -> Section | None:
    rows = found.get("more_labels")
    if not rows:
        return None
    level, now, last = level_text(found["confidence_level"]), rows[0], rows[-1]
    said = (
        f"With {now['labels']:,} labels the {level} is ± {value_text(now['half_width'], found)}; with "
        f"{last['labels']:,} it would be about ± {value_text(last['half_width'], found)}."
    )
    return Section(
        title="What more labels would buy",
        name="more-labels",
        lines=[
            *_of_one(found),
            said,
            "Expected from the labels so far, each further round going where it helps most.",
        ],
        drawings=[width_drawing(rows, found)],
        tables=[
            Table(
                title="Expected half-widths",
                header=("labels", f"half-width of the {level}"),
                rows=[[row["labels"], row["half_width"]] for row in rows],
            )
        ],
    )


def _method(found: Findings) -> Section:
    method = found["method"]
    return Section(
        title="Method",
        name="method",
        lines=[" ".join(method["sentences"]), "This rests on assumptions, which could fail:"],
        points=method["assumptions"],
    )


def _sources(found: Findings) -> Section:
    return Section(title="Sources", name="sources", points=found["method"]["references"])


def _again(found: Findings) -> Section:
    made = found["provenance"]
    rows = [[name, str(value)] for name, value in made.items() if name != "commands" and value is not None]
    return Section(
        title="To run it again",
        name="again",
        lines=["The same sample and labels give the same figures."],
        tables=[Table(title="Versions", header=("what", "which"), rows=rows)],
        commands=made["commands"],
    )


def _examples(found: Findings) -> Section | None:
    examples = found.get("examples")
    if not examples:
        return None
    names = list(dict.fromkeys(name for row in examples for name in row))
    return Section(
        title="Examples",
        name="examples",
        lines=["Units as the annotators saw them, those first where proxy and label differ most."],
        tables=[
            Table(
                title="Examples", header=names, rows=[[row.get(name) for name in names] for row in examples]
            )
        ],
    )
