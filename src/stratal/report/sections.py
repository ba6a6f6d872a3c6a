"""A report as a sequence of sections: the one content that its HTML and its Markdown are made from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Any

from stratal.report import estimates
from stratal.report.pages import PAIR
from stratal.report.text import Page, interval_text, level_text, number, table_of, value_text

Findings = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]


MOST_IDS = 20

# Rows that are shares where the estimate is; the others may each be something else.
PERCENT = ("comparisons", "domains")


def report_sections(findings: Findings) -> list[Page]:
    """Return the sections of a report (of `Findings.to_dict`); those without content are left out."""
    found = [replace(_answer(findings), title="Answer", name="answer")]
    for kind, title in estimates.TABLES.items():
        if findings["estimate"].get(kind):
            make = {"comparisons": _models, "judge": _judge}.get(kind, partial(_table, kind=kind))
            section = make(findings)
            found.append(replace(section, title=section.title or title, name=section.name or kind))
    parts = {
        **findings,
        "nonresponse": findings["estimate"]["nonresponse"],
        "strata": findings["strata"] if len(findings["strata"]) > 1 else None,
        "sources": findings["method"]["references"],
    }
    for name, (title, describe) in _SECTIONS.items():
        if parts.get(name):
            section = describe(findings, parts[name])
            about = name in _OF_ONE and _compared(findings)
            if about:
                lines = [f"Of one model alone: {findings['quantity']}."]
            else:
                lines = []
            name = name.replace("_", "-")
            found.append(replace(section, title=title, name=name, lines=[*lines, *section.lines]))
    return found


def _compared(found: Findings) -> bool:
    """Return whether several models were compared, so that the estimate is of one of them."""
    return bool(found["estimate"].get("leaderboard"))


def _answer(found: Findings) -> Page:
    estimate = found["estimate"]
    if found.get("title") and found.get("question"):
        lines = [f"Question: {found['question']}"]
    else:
        lines = []
    lines.append(estimates.answer_sentence(found))
    drawings = []
    if not _compared(found):  # with what the answer and other sections do not say
        elsewhere = ("nonresponse", "effective_sample_size", "random_labels_of_equal_width", "judge")
        lines += estimates.sentences({**estimate, **dict.fromkeys(elsewhere)})[1:]
        if estimate["confidence_interval"] is not None:
            row = {**estimate, "name": found["quantity"], "reported": True}
            drawings = [forest_drawing("estimate", row["name"], [row], found["share"], margin=0.5)]
    warned = estimate.get("warnings", ())
    lines[1:1] = [f"{note[:1].upper()}{note[1:]}." for note in warned]
    others = (note for note in estimate["notes"] if note not in warned)
    notes = [f"{note[:1].upper()}{note[1:].removesuffix('.')}." for note in others]
    return Page(lines=lines, drawings=drawings, notes=notes)


def _table(found: Findings, kind: str) -> Page:
    """Return the section of a table that the estimate's dict carries."""
    rows = found["estimate"][kind]
    title = estimates.TABLES[kind]
    named = []
    for row in rows:  # by what its label says, which stands before its estimate
        label = [str(row[entry]) for entry in list(row)[: list(row).index("estimate")] if row[entry]]
        named.append({**row, "name": " · ".join(label)})
    drawing = forest_drawing(kind, title, named, found["share"] and kind in PERCENT)
    table = estimates.estimates_table(title, rows, found["confidence_level"])
    return Page(drawings=[drawing], tables=[table])


# Judges that a report draws; its tables have all.
_MOST_JUDGES = 6

# Shares of a judge that a report draws, and what it calls them.
_DRAWN = {
    "agreement": "{judge} agrees with people",
    "recall": "finds {class!r}",
    "false_discovery_rate": "wrong to say {class!r}",
}


def _judge(found: Findings) -> Page:
    """Return the section of judges: what each gets right."""
    rows = found["estimate"]["judge"]
    drawings = []
    for k, judge in enumerate([*estimates.by_judge(rows)][:_MOST_JUDGES]):
        shares = [
            {**row, "name": _DRAWN[row["metric"]].format(**row), "reported": row["metric"] == "agreement"}
            for row in rows
            if row["judge"] == judge and row["metric"] in _DRAWN
        ]
        if shares:
            drawings.append(forest_drawing(f"judge-{k}", f"{judge}: rates", shares, share=True))
    signed = [
        {**row, "name": f"{row['judge']}: {row['metric']}"}
        for row in rows
        if row["metric"] in ("kappa", "pearson", "spearman", "icc")
    ]
    drawings.append(forest_drawing("kappas", "Beyond chance (1 is perfect)", signed, share=False))
    return Page(
        lines=[
            *estimates.judge_sentences(rows, _MOST_JUDGES),
            "People's labels are taken for the truth, and estimated for all units as the sample was drawn.",
        ],
        drawings=drawings,
        tables=estimates.judge_tables(rows, level_text(found["confidence_level"])),
    )


def _models(found: Findings) -> Page:
    """Return the section of differences, with the models' ranks where there are any."""
    section = _table(found, "comparisons")
    board = found["estimate"].get("leaderboard")
    if not board:
        return section
    ranked = [
        {**row, "name": f"{estimates.rank_text(row['rank'])} · {row['model']}", "estimate": row["mean"]}
        for row in board
    ]
    return Page(
        title="Models",
        name="models",
        lines=[
            "Models from the best, on the same labels. A rank such as 1 to 3 is the band of ranks that the "
            "simultaneous intervals of all differences leave open."
        ],
        drawings=[forest_drawing("models", "Models from the best", ranked, found["share"])],
        tables=[estimates.leaderboard_table(board, found["confidence_level"], bars=False), *section.tables],
    )


def _side_by_side(found: Findings, rows: Rows) -> Page:
    title = "Estimates side by side"
    columns = {
        "reading": lambda row: row["name"] + (" (reported)" if row["reported"] else ""),
        "estimate": "estimate",
        level_text(found["confidence_level"]): "confidence_interval",
        "what it is": "what",
    }
    return Page(
        lines=[
            "The same labels, read in several ways. Only the reported one takes account of how the units "
            "were drawn and of what the proxy knows; the others show what that changes."
        ],
        drawings=[forest_drawing("side-by-side", title, rows, found["share"])],
        tables=[table_of(title, rows, columns)],
        notes=found.get("side_by_side_notes", ()),
    )


_STRATA = {
    "stratum": "name", "units": "size", "drawn": "drawn", "labelled": "n", "mean proxy": "proxy_mean",
    "mean outcome": "mean", "sd": "standard_deviation",
}  # fmt: skip


def _strata(_: Findings, strata: Rows) -> Page:
    rows = [{**row, "name": f"{k}. {row['name']}"} for k, row in enumerate(strata, 1)]
    drawn, units = (sum(row[name] for row in rows) for name in ("drawn", "size"))
    shares = (
        "Some have a larger share of the labels than of the units, by the rule that is named under Method."
    )
    if all(abs(row["drawn"] - drawn * row["size"] / units) <= 1 for row in rows):  # to a label
        shares = "Each has its share of the labels."
    return Page(
        lines=[
            f"The population was divided into {len(rows):,} strata. {shares} Each counts by its share of the "
            "units, whatever its share of the labels."
        ],
        tables=[table_of("Strata", rows, _STRATA)],
    )


def _how_good(check: Mapping[str, Any]) -> list[str]:
    """Return how each proxy goes with the labels, and what the estimate's leaves open.

    Examples
    --------
    >>> _how_good({"correlations": [{"proxy": "history", "correlation": 0.5}], "left_open": 0.75})[1]
    'In this estimate the proxy leaves 75% of the variance of the labels unexplained.'
    """
    lines = [
        f"{row['proxy']!r} has a correlation of {row['correlation']:.2f} with the labels."
        for row in check["correlations"]
        if row["correlation"] is not None
    ]
    left = check["left_open"]
    if left is not None and left < 0.995:
        lines.append(
            f"In this estimate the proxy leaves {left:.0%} of the variance of the labels unexplained."
        )
    return lines


def _calibration(found: Findings, check: Mapping[str, Any]) -> Page:
    level = level_text(found["confidence_level"])
    bias = check["bias"]
    average = []
    if bias is not None:
        far, (low, high) = bias["estimate"], bias["confidence_interval"]
        if low * high <= 0:
            sure = f"{level} of the difference {low:.2g} to {high:.2g}: it may be none"
        else:
            sure = f"{level} {' to '.join(f'{end:.2g}' for end in sorted((abs(low), abs(high))))}"
        direction = "above" if far > 0 else "below"
        average = [f"On average the proxy lies {abs(far):.2g} {direction} the labels ({sure})."]
    columns = {
        "proxy from": "from", "to": "to", "labels": "n", "mean proxy": "proxy_mean",
        "mean outcome": "outcome_mean", level: "confidence_interval",
    }  # fmt: skip
    return Page(
        lines=[
            f"Mean labels by the proxy {check['proxy']!r}, in groups of units with "
            "similar proxies. A calibrated proxy lies on the diagonal. The estimate does not need it to: a "
            "proxy that is off makes the interval wider, not the estimate wrong.",
            *average,
            *_how_good(check),
        ],
        drawings=[calibration_drawing(check)] if len(check["bins"]) > 1 else [],
        tables=[table_of("Proxy and labels", check["bins"], columns)],
    )


def new_version_page(new: Mapping[str, Any]) -> Page:
    """Return the page of a new version (`NewVersion.to_dict`).

    Examples
    --------
    >>> span = {"estimate": 0.5, "lowest": 0.5, "highest": 0.5, "confidence_interval": [0.4, 0.6]}
    >>> new = {"units": 20, "labelled": 20, "missing": 0, "same": 15, "changed": 5, "blank": 0, "known": 20,
    ...        "complete": True, "confidence_level": 0.95, "old": span, "new": span, "difference": span,
    ...        "needs_labels": [], "needs_answers": []}
    >>> new_version_page(new).lines[1]
    'The labels that you have settle the new version too: nothing has to be labelled.'
    """
    if new["blank"]:
        blank = f", of these {new['blank']:,} none at all (blank)"
    else:
        blank = ""
    lines = [
        f"Of {new['units']:,} drawn units that the new version answered, {new['same']:,} have the same "
        f"answer and {new['changed']:,} another{blank}."
    ]
    lines += [f"{note[:1].upper()}{note[1:]}." for note in new.get("warnings", ())]
    if new["missing"]:
        lines.append(
            f"{new['missing']:,} drawn units do not occur among the new answers: what the new version says "
            "of them is not known."
        )
    if new["complete"]:
        lines.append("The labels that you have settle the new version too: nothing has to be labelled.")
    else:
        unknown = len(new["needs_labels"]) + len(new["needs_answers"])
        lines.append(
            f"Of the {new['labelled']:,} labelled units, on which old, new and difference all rest, "
            f"{unknown:,} have no known new outcome. At worst and at best these are all as bad or as good as "
            "they can be; the interval holds for both, and for everything between."
        )
    needs = []
    for title, wanted in (("labels", new["needs_labels"]), ("new answers", new["needs_answers"])):
        if len(wanted) > MOST_IDS:
            more = f" and {len(wanted) - MOST_IDS:,} more"
        else:
            more = ""
        needs += [f"Need {title}: {', '.join(wanted[:MOST_IDS])}{more}."] if wanted else []
    spans = {"old": new["old"], "new": new["new"], "new minus old": new["difference"]}
    columns = {
        "": "name", "estimate": "estimate", "at worst": "lowest", "at best": "highest",
        level_text(new["confidence_level"]): "confidence_interval",
    }  # fmt: skip
    table = table_of("Old and new", [{"name": name, **span} for name, span in spans.items()], columns)
    return Page(lines=lines, tables=[table], notes=needs)


def new_answers_page(described: Mapping[str, Any], title: str) -> Page:
    """Return the verdicts on new answers of which some outcomes are unknown, and what needs labels.

    Examples
    --------
    >>> span = {"estimate": None, "lowest": 0.4, "highest": 0.6, "confidence_interval": [0.3, 0.7]}
    >>> new = {"units": 20, "labelled": 20, "missing": 0, "same": 15, "changed": 5, "blank": 0, "known": 15,
    ...        "complete": False, "confidence_level": 0.95, "old": span, "new": span, "difference": span,
    ...        "needs_labels": ["a"], "needs_answers": []}
    >>> new_answers_page({"new_version": new}, "new.csv").lines[0]
    'new.csv: between 0.4 and 0.6, 95% interval 0.3 to 0.7.'
    """
    new = described["new_version"]
    span = new["new"]
    value = f"between {number(span['lowest'])} and {number(span['highest'])}"
    if span["estimate"] is not None:
        value = f"estimate {number(span['estimate'])}"
    low, high = span["confidence_interval"] or (None, None)
    level = level_text(new["confidence_level"])
    if low is None:
        interval = "no interval"
    else:
        interval = f"{level} {number(low)} to {number(high)}"
    page = new_version_page(new)
    lines = [f"{title}: {value}, {interval}.", *estimates.verdict_lines(described), *page.lines]
    return replace(page, lines=lines)


def _new_version(found: Findings, new: Mapping[str, Any]) -> Page:
    """Return the section of an old and a new version on the same labels."""
    rows = [{**new[key], "name": f"{key} version", "reported": key == "new"} for key in ("old", "new")]
    drawing = forest_drawing("versions", "Old and new version", rows, found["share"])
    return replace(new_version_page(new), drawings=[drawing])


def _nonresponse(found: Findings, counts: Mapping[str, Any]) -> Page:
    lines = [f"All {counts['drawn']:,} drawn units have a label."]
    tables = []
    if estimates.unlabelled(found["estimate"]):
        hard = "They are not missing at random if they were left out because they are hard."
        lines = [estimates.missing_text(counts), hard]
        columns = {
            "stratum": "name",
            "drawn": "drawn",
            "labelled": "n",
            "share unlabelled": lambda row: (row["drawn"] - row["n"]) / row["drawn"],
        }
        rows = [row for row in found["strata"] if row["drawn"] and row["n"] < row["drawn"]]
        tables.append(table_of("By stratum", rows, columns))
    return Page(lines=lines, tables=tables)


def _agreement(_: Findings, seen: Mapping[str, Any]) -> Page:
    if seen["alpha"] is None:
        alpha = "undefined"
    else:
        alpha = f"{seen['alpha']:.3f}"
    lines = [f"Krippendorff's α ({seen['level']}): {alpha}. 1 is perfect agreement, 0 what chance gives."]
    if seen.get("units") is not None:
        lines.append(
            f"{len(seen['annotators']):,} annotators gave {seen['answers']:,} answers; {seen['shared']:,} of "
            f"{seen['units']:,} units have several. Of {seen['open']:,} units the answers differ and nobody "
            f"has decided; {seen['decided']:,} were decided."
        )
    pairs = seen.get("pairs", ())
    if pairs:
        tables = [table_of("Pairs", pairs, PAIR | {"Cohen's κ": "kappa"})]
    else:
        tables = []
    return Page(lines=lines, tables=tables)


def _second_look(_: Findings, rows: Rows) -> Page:
    """Return the section of labels that another answer replaced, with their history."""
    changed = sum(row["first"].casefold() != row["now"].casefold() for row in rows)
    return Page(
        lines=[
            f"{len(rows):,} items were looked at again: in {changed:,} of {len(rows):,} the first label was "
            "wrong. The estimate takes the later ones."
        ],
        tables=[table_of("Second look", rows, {"item": "id", "first label": "first", "label now": "now"})],
    )


def _more_labels(found: Findings, rows: Rows) -> Page:
    level = level_text(found["confidence_level"])
    now = rows[0]
    last = rows[-1]
    half = [value_text(row["half_width"], found["share"]) for row in (now, last)]
    columns = {"labels": "labels", f"half-width of the {level}": "half_width"}
    return Page(
        lines=[
            f"With {now['labels']:,} labels the {level} is ± {half[0]}; with {last['labels']:,} it would be "
            f"about ± {half[1]}.",
            "Expected from the labels so far, each further round going where it helps most.",
        ],
        tables=[table_of("Expected half-widths", rows, columns)],
    )


def _method(_: Findings, method: Mapping[str, Any]) -> Page:
    lines = [" ".join(method["sentences"]), "This rests on assumptions, which could fail:"]
    return Page(lines=lines, notes=method["assumptions"])


def _provenance(_: Findings, made: Mapping[str, Any]) -> Page:
    versions = [f"{name} {value}" for name, value in made.items() if name != "commands" and value is not None]
    return Page(
        lines=["The same sample and labels give the same figures.", f"{', '.join(versions)}."],
        commands=made["commands"],
    )


def _examples(_: Findings, examples: Rows) -> Page:
    lines = ["Units as the annotators saw them, those first where proxy and label differ most."]
    names = list(dict.fromkeys(name for row in examples for name in row))
    return Page(lines=lines, tables=[table_of("Examples", examples, names)])


# Title and content of each section: what a reader asks first, then what a reviewer checks.
_SECTIONS: dict[str, tuple[str, Callable[[Findings, Any], Page]]] = {
    "new_version": ("The new version on the same labels", _new_version),
    "more_labels": ("What more labels would buy", _more_labels),
    "examples": ("Examples", _examples),
    "side_by_side": ("With and without the design", _side_by_side),
    "calibration": ("The proxy, and how good it is", _calibration),
    "strata": ("Strata", _strata),
    "nonresponse": ("Units without a label", _nonresponse),
    "agreement": ("Agreement of the annotators", _agreement),
    "second_look": ("Second look", _second_look),
    "method": ("Method", _method),
    "sources": ("Sources", lambda _, references: Page(notes=references)),
    "provenance": ("To run it again", _provenance),
}

# Sections that are of one model, where several were compared.
_OF_ONE = ("more_labels", "side_by_side", "calibration", "strata")


# Drawings are inline SVG: narrow enough for a phone, in colours of the page's style sheet. Colours are names
# of classes, so that print and dark mode change them; what colour shows, shape or text shows too. Every
# drawing has a title, a description, and a table with the same content.


@dataclass(frozen=True, slots=True)
class Scale:
    """Places of values between `start` (at `low`) and `end` (at `high`).

    Examples
    --------
    >>> scale = Scale(0.0, 2.0, 10.0, 30.0)
    >>> scale(1.0), scale.ends([None, 1.0])
    (20.0, [10.0, 20.0])
    """

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def of(cls, values: Iterable[float | None], start: float, end: float) -> Scale:
        """Return the scale that holds all values that are there; its width is never zero."""
        known = [float(value) for value in values if value is not None] or [0.0, 1.0]
        low = min(known)
        high = max(known)
        if not high > low:
            low = low - 0.5
            high = high + 0.5
        return cls(low, high, start, end)

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ends(self, interval: Sequence[float | None]) -> list[float]:
        """Return the places of an interval's ends; the scale's own where it is open."""
        low, high = interval
        return [self.start if low is None else self(low), self.end if high is None else self(high)]


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return up to `most` + 1 round numbers from `low` to `high`.

    Examples
    --------
    >>> ticks(0.911, 0.952)
    [0.92, 0.93, 0.94, 0.95]
    """
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round((first + k) * step, digits) + 0.0 for k in range(count)]


# Units of a drawing's width: its text is read on a phone, and is not shouted across a page.
WIDTH = 440

_LEFT = 12.0
_RIGHT = WIDTH - 12.0
_ROW = 40
_MOST_ROWS = 40
# Characters of a row's name that leave room for its values.
_NAME = 46

# `name`, `estimate`, `confidence_interval`, and perhaps `reported`: whether it is the answer.
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing and its description in words.

    Parameters
    ----------
    name : str
        Part of the ids of its title and description.
    title : str
    description : str
        What it shows, for those who do not see it.
    height : float
    marks : sequence of str
        Elements of SVG.

    Examples
    --------
    >>> Drawing("a", "A", "b", 9, ()).svg()[:20]
    '<svg viewBox="0 0 44'
    """

    name: str
    title: str
    description: str
    height: float
    marks: Sequence[str]

    def svg(self) -> str:
        """Return the element."""
        ids = (f"{self.name}-title", f"{self.name}-description")
        return (
            f'<svg viewBox="0 0 {WIDTH} {self.height:g}" role="img" aria-labelledby="{ids[0]} {ids[1]}">'
            f'<title id="{ids[0]}">{escape(self.title)}</title>'
            f'<desc id="{ids[1]}">{escape(self.description)}</desc>{"".join(self.marks)}</svg>'
        )


def forest_drawing(
    name: str, title: str, rows: Sequence[Row], share: bool, *, margin: float = 0.0
) -> Drawing:
    """Return intervals below each other, each with its name and value above it.

    `margin` is how far the scale goes on at either side, as a share of what it must hold; a share stays
    between 0 and 1.

    Examples
    --------
    >>> row = {"name": "new", "estimate": 0.8, "confidence_interval": [0.7, 0.9]}
    >>> forest_drawing("models", "Models", [row], share=True).description
    'new: 80.0%, 70.0–90.0%'
    """
    if len(rows) > _MOST_ROWS:
        title = f"{title}: the first {_MOST_ROWS} of {len(rows):,}"
    rows = rows[:_MOST_ROWS]
    values = [value for row in rows for value in (row["estimate"], *(row["confidence_interval"] or ()))]
    known = [float(value) for value in values if value is not None]
    more = margin * (max(known) - min(known)) if known else 0.0
    ends = [min(known) - more, max(known) + more] if known else []
    if share and known and min(known) >= 0 and max(known) <= 1:
        ends = [max(ends[0], 0.0), min(ends[1], 1.0)]
    scale = Scale.of(ends, _LEFT + 6, _RIGHT - 6)
    bottom = _ROW * len(rows) + 8
    words = []
    marks = [_line(_LEFT, bottom, _RIGHT, bottom, "axis")]
    for tick in ticks(scale.low, scale.high):
        x = scale(tick)
        text = f"{100 * tick:.6g}%" if share else f"{tick:g}"
        marks += [_line(x, 0, x, bottom, "grid"), _text(x, bottom + 15, text, "tick", "middle")]
    for place, row in enumerate(rows):
        value = row["estimate"]
        interval = row["confidence_interval"]
        reported = row.get("reported")
        kind = "reported" if reported else "other"
        y = _ROW * place + 28
        called = row["name"]
        text = _row_text(row, share)
        if len(called) <= _NAME:
            short = called
        else:
            short = f"{called[: _NAME // 2 - 1]}…{called[-(_NAME // 2) :]}"
        marks.append(_text(_LEFT, y - 14, short, "name" + (" strong" if reported else "")))
        marks.append(_text(_RIGHT, y - 14, text, "value", "end"))
        if interval is not None:
            low, high = scale.ends(interval)
            marks.append(_line(low, y, high, y, f"range {kind}"))
            marks += [_line(end, y - 4, end, y + 4, f"range {kind}") for end in (low, high)]
        if value is not None:
            marks.append(_dot(scale(value), y, kind, 5 if reported else 4))
        words.append(f"{called}: {text}")
    return Drawing(name, title, "; ".join(words), _ROW * len(rows) + 30, marks)


def _row_text(row: Row, share: bool) -> str:
    value = row["estimate"]
    interval = row["confidence_interval"]
    if interval is None:
        ends = []
    else:
        ends = [interval_text(interval, share)]
    return ", ".join([*([] if value is None and ends else [value_text(value, share)]), *ends])


def calibration_drawing(check: Mapping[str, Any]) -> Drawing:
    """Return mean labels over mean proxies with their intervals, and the diagonal.

    Examples
    --------
    >>> bins = [{"proxy_mean": 0.9, "outcome_mean": 0.8, "confidence_interval": [0.7, 0.9], "n": 30}]
    >>> calibration_drawing({"proxy": "judge", "bins": bins}).description
    'mean proxy 0.900: mean outcome 0.800 (30 labels)'
    """
    rows = [row for row in check["bins"] if row["outcome_mean"] is not None]
    known = [
        value
        for row in rows
        for value in (row["proxy_mean"], row["outcome_mean"], *(row["confidence_interval"] or ()))
    ]
    across = Scale.of(known, 44, 300)
    up = Scale.of(known, 262, 12)
    low = across.low
    high = across.high
    marks = [
        _line(44, 262, 300, 262, "axis"),
        _line(44, 262, 44, 12, "axis"),
        _line(across(low), up(low), across(high), up(high), "diagonal"),
        _text(172, 300, "mean proxy", "name", "middle"),
        '<text x="12" y="137" class="name" text-anchor="middle" transform="rotate(-90 12 137)">'
        "mean outcome</text>",
    ]
    for tick in ticks(low, high):
        marks += [_text(across(tick), 278, f"{tick:g}", "tick", "middle")]
        marks += [_text(38, up(tick) + 4, f"{tick:g}", "tick", "end")]
    for row in rows:
        x = across(row["proxy_mean"])
        interval = row["confidence_interval"]
        if interval is not None:
            low, high = up.ends(interval)
            marks.append(_line(x, low, x, high, "range reported"))
        marks.append(_dot(x, up(row["outcome_mean"])))
    words = [
        f"mean proxy {row['proxy_mean']:.3f}: mean outcome {row['outcome_mean']:.3f} ({row['n']:,} labels)"
        for row in rows
    ]
    return Drawing("calibration-curve", "Labels by proxy", "; ".join(words), 306, marks)


def _dot(x: float, y: float, kind: str = "reported", r: int = 4) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" class="mark {kind}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'
