"""A report as one file, HTML or Markdown, its tables for LaTeX too, and the method in words to be cited."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from stratal.report.estimates import answer_sentence
from stratal.report.sections import report_sections
from stratal.report.text import ReportTable, table_html

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


def table_markdown(table: ReportTable) -> str:
    """Return a table as Markdown.

    Examples
    --------
    >>> print(table_markdown(ReportTable(header=["stratum", "units"], rows=[["a|b", 1200]])))
    | stratum | units |
    |---|---:|
    | a\\|b | 1,200 |
    """
    ends = ["---:" if numeric else "---" for numeric in table.numeric()]
    rows = [table.header, *table.cells()]
    lines = ["| " + " | ".join(_markdown(entry) for entry in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join(ends) + "|", *lines[1:]])


def table_latex(table: ReportTable) -> str:
    r"""Return a table for LaTeX.

    Examples
    --------
    >>> print(table_latex(ReportTable(header=["stratum", "units"], rows=[["a & b", 1200]], title="Strata")))
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
    if table.title:
        caption = [f"\\caption{{{_latex(table.title)}}}"]
    else:
        caption = []
    above = [r"\begin{table}", r"\centering", *caption, f"\\begin{{tabular}}{{{columns}}}", r"\toprule"]
    below = [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join([*above, head, r"\midrule", *rows, *below])


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(str(text).split()))


# Endings of a report's file and what writes it; JSON is the dict itself.
WRITERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    ".html": report_html,
    ".htm": report_html,
    ".md": report_markdown,
}


@cache
def methods() -> dict[str, Any]:
    """Return what `methods.toml` says: `sources`, and name → words and sources of other kinds."""
    return tomllib.loads(Path(__file__).with_name("methods.toml").read_text(encoding="utf-8"))


def described_method(
    estimate: Mapping[str, Any],
    drawn: Sequence[str] = (),
    assumption: str = "",
    allocation: str | None = None,
) -> dict[str, Any]:
    """Return sentences, assumptions and references of an estimate (`Estimate.to_dict`).

    Parameters
    ----------
    estimate : dict
    drawn : sequence of str
        What was drawn, and its sources: names in `methods.toml`, or as they are cited.
    assumption : str
        What else could fail under this design.
    allocation : str, optional
        How the labels were shared among the strata.

    Examples
    --------
    >>> found = described_method({"design": "simple-random", "estimator": "horvitz-thompson",
    ...     "outcome": "binary", "interval_method": "clopper-pearson", "confidence_level": 0.95, "n": 20,
    ...     "population_size": 100, "target": "population",
    ...     "nonresponse": {"drawn": 20, "labelled": 20, "rate": 0.0}},
    ...     ("a simple random sample without replacement", "cochran"))
    >>> found["sentences"][0]
    '20 of 100 units were labelled, drawn as a simple random sample without replacement.'
    """
    design, *sources = drawn or (f"a {estimate['design']} sample",)
    unknown = {"words": estimate["estimator"], "sources": []}
    mean = methods()["estimators"].get(estimate["estimator"], unknown)
    interval = methods()["intervals"].get(estimate["interval_method"], unknown | {"words": ""})
    if allocation is None:
        shared = ""
    else:
        shared = f", its labels shared among the strata by the rule {allocation!r}"
    labelled = (estimate["nonresponse"] or {"labelled": estimate["n"]})["labelled"]
    if estimate["n"] == labelled:
        entered = ""
    else:
        entered = f" The estimate rests on {estimate['n']:,} of them."
    sentences = [
        f"{labelled:,} of {estimate['population_size']:,} units were labelled, drawn as "
        f"{design}{shared}.{entered}",
        f"The estimate is {mean['words']}.",
    ]
    if interval["words"]:
        level = f"{100 * estimate['confidence_level']:g}%"
        sentences.append(f"Its {level} confidence interval is {interval['words']}.")
    if allocation in ("neyman", "robust"):
        neyman = ["neyman"]
    else:
        neyman = []
    cited = [*sources, *neyman, *mean["sources"], *interval["sources"]]
    return {
        "sentences": sentences,
        "assumptions": _assumptions(estimate, assumption),
        "references": [methods()["sources"].get(name, name) for name in dict.fromkeys(cited)],
    }


def _assumptions(estimate: Mapping[str, Any], assumption: str) -> list[str]:
    """Return what could fail."""
    found = [
        "The labels are right: what the annotators get wrong, the estimate takes for the truth.",
        "The units were drawn at random as described, and none was replaced by hand.",
    ]
    counts = estimate["nonresponse"]
    if counts is not None and counts["labelled"] < counts["drawn"]:
        found.append("Units without a label are like the labelled ones of their stratum.")
    if estimate["target"] == "population":
        found.append(
            f"The answer is about these {estimate['population_size']:,} units; nothing is claimed about "
            "units of another kind or time."
        )
    else:
        found.append("The units themselves are a random draw from the distribution that is asked about.")
    if estimate["outcome"] == "unbounded":
        found.append(
            "The mean of the labels is nearly normal: no outcome is so rare and large that none was seen."
        )
    if assumption:
        found.append(assumption)
    if estimate["estimator"] in ("ppi++", "stratppi"):
        found.append(
            "λ was fitted on the same labels; the loss of precision is counted, the small bias is not."
        )
    return found
