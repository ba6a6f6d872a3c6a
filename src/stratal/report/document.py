"""A report as one file, HTML or Markdown, from the same sections; and tables for Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from stratal.report.estimates import answer_sentence
from stratal.report.sections import report_sections
from stratal.report.text import Table, table_html

_TEMPLATES = Path(__file__).parent / "templates"
_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "–": "--", "−": "$-$", "±": r"$\pm$", "∞": r"$\infty$", "λ": r"$\lambda$",
    "α": r"$\alpha$", "κ": r"$\kappa$", "π": r"$\pi$", "≤": r"$\le$", "≥": r"$\ge$", "½": r"$\frac12$",
    "…": r"\dots{}", "·": r"$\cdot$", "²": r"$^2$", "×": r"$\times$",
}  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#~$])")


def report_html(findings: Mapping[str, Any], *, whole: bool = True) -> str:
    """Return a report as one page that needs nothing else: no script, no request, no font.

    `whole=False` gives what a notebook shows: the same in a frame of its own.
    """
    from jinja2 import Environment, FileSystemLoader
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["table"] = lambda table: Markup(table_html(table))
    environment.filters["svg"] = lambda drawing: Markup(drawing.svg())
    page = environment.get_template("report.html.jinja").render(
        title=title_of(findings),
        about=about(findings),
        style=Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8")),
        answer=answer_sentence(findings),
        sections=report_sections(findings),
        kind=findings["kind"],
        made=findings["provenance"],
    )
    if whole:
        return page
    frame = "width:100%;height:40rem;border:0"
    return f'<iframe title="Report" sandbox="" style="{frame}" srcdoc="{escape(page)}"></iframe>'


def report_markdown(findings: Mapping[str, Any]) -> str:
    """Return a report as Markdown; whatever stands in the data stays text."""
    parts = [f"<!-- {findings['kind']} -->", f"# {_markdown(title_of(findings))}", about(findings)]
    for section in report_sections(findings):
        parts.append(f"## {_markdown(section.title)}")
        parts += [_markdown(line) for line in section.lines]
        parts += [table_markdown(table.first()) for table in section.tables]
        parts += ["\n".join(f"- {_markdown(point)}" for point in section.notes)] if section.notes else []
        parts += ["```sh\n" + "\n".join(section.commands) + "\n```"] if section.commands else []
    return "\n\n".join(parts) + "\n"


def title_of(findings: Mapping[str, Any]) -> str:
    """Return the heading of a report.

    Examples
    --------
    >>> title_of({"title": "Audit", "question": "Right?"})
    'Audit'
    """
    return str(findings.get("title") or findings.get("question") or "How good is the model?")


def about(findings: Mapping[str, Any]) -> str:
    """Return the line below the heading: labels, units, design and date.

    Examples
    --------
    >>> estimate = {"n": 300, "population_size": 9000, "design": "stratified"}
    >>> about({"estimate": estimate, "provenance": {"written": "2026-05-01"}})
    '300 labels of 9,000 units · stratified sample · 2026-05-01'
    """
    labels, units, design = (findings["estimate"].get(name) for name in ("n", "population_size", "design"))
    of = f" of {units:,} units" if units else ""
    drawn = f"{design} sample · " if design else ""
    return f"{labels:,} labels{of} · {drawn}{findings['provenance']['written']}"


def table_markdown(table: Table) -> str:
    """Return a table as Markdown.

    Examples
    --------
    >>> print(table_markdown(Table(header=["stratum", "units"], rows=[["a|b", 1200]])))
    | stratum | units |
    |---|---:|
    | a\\|b | 1,200 |
    """
    ends = ["---:" if numeric else "---" for numeric in table.numeric()]
    rows = [table.header, *table.cells()]
    lines = ["| " + " | ".join(_markdown(entry) for entry in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join(ends) + "|", *lines[1:]])


def table_latex(table: Table) -> str:
    r"""Return a table for LaTeX.

    Examples
    --------
    >>> print(table_latex(Table(header=["stratum", "units"], rows=[["a & b", 1200]], title="Strata")))
    \begin{table}
    \centering
    \caption{Strata}
    \begin{tabular}{lr}
    \toprule
    stratum & units \\
    \midrule
    a \& b & 1,200 \\
    \bottomrule
    \end{tabular}
    \end{table}
    """
    columns = "".join("r" if numeric else "l" for numeric in table.numeric())
    head, *rows = (" & ".join(map(_latex, row)) + r" \\" for row in (table.header, *table.cells()))
    caption = [f"\\caption{{{_latex(table.title)}}}"] if table.title else []
    above = [r"\begin{table}", r"\centering", *caption, f"\\begin{{tabular}}{{{columns}}}", r"\toprule"]
    below = [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join([*above, head, r"\midrule", *rows, *below])


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(str(text).split()))


WRITERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    ".html": report_html,
    ".htm": report_html,
    ".md": report_markdown,
}
"""Endings of a report's file and what writes it; JSON is the dict itself."""
