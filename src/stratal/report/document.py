"""Reports as HTML or Markdown, tables as Markdown or LaTeX, and the description of the method."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from html import escape
from pathlib import Path

from stratal.protocols import JsonDict, JsonMapping
from stratal.report.estimates import answer_sentences, lam_of_groups, requirement_remark
from stratal.report.sections import report_sections
from stratal.report.text import Page, ReportTable, level_text, table_entry, table_html, table_of
from stratal.report.thresholds import threshold_sections, threshold_sentences

# The templates are files of the package, so that an editor highlights them as HTML.
_TEMPLATES = Path(__file__).parent / "templates"

# Characters that LaTeX interprets, or that its default encoding lacks.
_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "–": "--", "−": "$-$", "±": r"$\pm$", "∞": r"$\infty$", "λ": r"$\lambda$",
    "α": r"$\alpha$", "κ": r"$\kappa$", "π": r"$\pi$", "≤": r"$\le$", "≥": r"$\ge$", "½": r"$\frac12$",
    "…": r"\dots{}", "·": r"$\cdot$", "²": r"$^2$", "×": r"$\times$",
}  # fmt: skip

# Characters that Markdown interprets.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#~$])")


def report_html(findings: JsonMapping, *, standalone: bool = True) -> str:
    """Return a report as one HTML page without scripts, requests or fonts.

    `standalone=False` returns the page in a frame for a notebook.
    """
    page = sections_html(
        title=report_title(findings),
        subtitle=report_subtitle(findings),
        answer=answer_lines(findings)[0],
        sections=all_sections(findings),
        kind=findings["kind"],
        version=findings["provenance"]["stratal"],
    )
    if standalone:
        return page
    style = "width:100%;height:40rem;border:0"
    # The sandbox forbids scripts, so that text in the data cannot run.
    return f'<iframe title="Report" sandbox="" style="{style}" srcdoc="{escape(page)}"></iframe>'


def answer_lines(findings: JsonMapping) -> list[str]:
    """Return the sentences on the estimate and on the accepted set, if the report has them."""
    lines = []
    if "estimate" in findings:
        lines += answer_sentences(findings)
    if findings.get("threshold"):
        lines.append(threshold_sentences(findings["threshold"])[0])
    return lines


def all_sections(findings: JsonMapping) -> list[Page]:
    """Return the sections of a report: the answer, the accepted set of a score, and the others."""
    sections = report_sections(findings)
    if not findings.get("threshold"):
        return sections
    first, *others = threshold_sections(findings["threshold"])
    if "estimate" not in findings:
        return [replace(first, title="Answer", name="answer"), *others, *sections]
    return [sections[0], first, *others, *sections[1:]]


def sections_html(
    *, title: str, subtitle: str, answer: str, sections: Sequence[Page], kind: str, version: str
) -> str:
    """Return sections as one HTML page; `answer` is the line of a section that is printed large."""
    # Jinja2 is imported only for HTML, not for answers in the terminal.
    from jinja2 import Environment, FileSystemLoader
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["table"] = lambda table: Markup(table_html(table))
    environment.filters["svg"] = lambda drawing: Markup(drawing.svg())
    return environment.get_template("report.html.jinja").render(
        title=title,
        subtitle=subtitle,
        style=Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8")),
        answer=answer,
        sections=sections,
        kind=kind,
        provenance={"stratal": version},
    )


def report_markdown(findings: JsonMapping) -> str:
    """Return a report as Markdown; text from the data is escaped."""
    blocks = [f"<!-- {findings['kind']} -->", f"# {_escape_markdown(report_title(findings))}"]
    blocks.append(report_subtitle(findings))
    for section in all_sections(findings):
        blocks.append(f"## {_escape_markdown(section.title)}")
        blocks += _content_blocks(section.lines, section.tables, section.notes)
        if section.commands:
            blocks.append("```sh\n" + "\n".join(section.commands) + "\n```")
    return "\n\n".join(blocks) + "\n"


def _content_blocks(lines: Sequence[str], tables: Sequence[ReportTable], notes: Sequence[str]) -> list[str]:
    """Return lines, tables and notes as blocks of Markdown, which are separated by empty lines."""
    blocks = [_escape_markdown(line) for line in lines]
    blocks += [table_markdown(table.printed()) for table in tables]
    if notes:
        blocks.append("\n".join(f"- {_escape_markdown(note)}" for note in notes))
    return blocks


def answer_markdown(result: JsonMapping, page: Page) -> str:
    """Return a result as a short Markdown text, such as a comment on a pull request.

    Parameters
    ----------
    result : dict
        `Evaluation.to_dict()`.
    page : Page
        The result without its requirements, in sentences and tables.
    """
    requirements = result.get("requirements", ())
    first, *other_lines = page.lines
    blocks = [f"**{_escape_markdown(first)}**"]
    if requirements:
        blocks.append(table_markdown(_requirements_table(result, requirements)))
    blocks += _content_blocks(other_lines, page.tables, page.notes)
    return "\n\n".join(blocks)


def _requirements_table(result: JsonMapping, requirements: Sequence[JsonMapping]) -> ReportTable:
    """Return the verdict on each requirement, and the labels that would decide it."""
    level = result.get("confidence_level") or result["new_version"]["confidence_level"]
    columns = {
        "verdict": "verdict",
        "required": "required",
        "estimate": partial(table_entry, name="estimate"),
        level_text(level): partial(table_entry, name="confidence_interval"),
        "to decide": lambda row: requirement_remark(row) or None,
    }
    return table_of("", requirements, columns)


def report_title(findings: JsonMapping) -> str:
    """Return the heading of a report."""
    return str(findings.get("title") or findings.get("question") or "How good is the model?")


def report_subtitle(findings: JsonMapping) -> str:
    """Return the line below the title: labels, units, design and date."""
    estimate = findings.get("estimate") or findings["threshold"]
    size = estimate.get("population_size")
    design = estimate.get("design")
    n_labels = estimate.get("n") or estimate["labels"]
    parts = [f"{n_labels:,} labels"]
    if size:
        parts[0] += f" of {size:,} units"
    if design and findings["provenance"].get("labelled rows") != "all":
        parts.append(f"{design} sample")
    parts.append(str(findings["provenance"]["written"]))
    return " · ".join(parts)


def table_markdown(table: ReportTable) -> str:
    """Return a table as Markdown."""
    alignments = ["---:" if is_numeric else "---" for is_numeric in table.numeric_columns()]
    lines = []
    for row in [table.header, *table.cells()]:
        cells = " | ".join(_escape_markdown(entry) for entry in row)
        lines.append(f"| {cells} |")
    return "\n".join([lines[0], "|" + "|".join(alignments) + "|", *lines[1:]])


def table_latex(table: ReportTable) -> str:
    r"""Return a table as LaTeX."""
    alignments = "".join("r" if is_numeric else "l" for is_numeric in table.numeric_columns())
    text_rows = [" & ".join(map(_escape_latex, row)) for row in (table.header, *table.cells())]
    header, *rows = (row + r" \\" for row in text_rows)
    lines = [r"\begin{table}", r"\centering"]
    if table.title:
        lines.append(f"\\caption{{{_escape_latex(table.title)}}}")
    lines += [f"\\begin{{tabular}}{{{alignments}}}", r"\toprule", header, r"\midrule", *rows]
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines)


def _escape_markdown(text: str) -> str:
    """Return a text as one line in which Markdown interprets no character."""
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def _escape_latex(text: str) -> str:
    """Return a text as one line in which LaTeX interprets no character."""
    return "".join(_LATEX.get(character, character) for character in " ".join(str(text).split()))


# Functions that write a report, by file extension. JSON is written from the dict.
WRITERS: dict[str, Callable[[JsonMapping], str]] = {
    ".html": report_html,
    ".htm": report_html,
    ".md": report_markdown,
}


@dataclass(frozen=True, slots=True)
class SelectionMethod:
    """How the labelled units were selected, for the description of a method.

    Parameters
    ----------
    text : str
        The end of a sentence after "units were labelled", such as ", drawn as a systematic sample".
    assumptions : tuple of str
        The assumptions of an estimate that this selection requires.
    """

    text: str
    assumptions: tuple[str, ...]

    @classmethod
    def drawn(cls, description: str, verb: str = "drawn as") -> SelectionMethod:
        """Return the selection of a random sample; `description` is that of its design."""
        return cls(f", {verb} {description}", (_DRAWN_AT_RANDOM,))


_DRAWN_AT_RANDOM = "The units were drawn at random as described, and no unit was replaced by hand."


@cache
def methods() -> JsonDict:
    """Return the content of `methods.toml`: texts and sources by name, and `sources` with the references."""
    return tomllib.loads(Path(__file__).with_name("methods.toml").read_text(encoding="utf-8"))


def describe_method(
    estimate: JsonMapping,
    design: Sequence[str] = (),
    assumption: str = "",
    allocation: str | None = None,
    selection: SelectionMethod | None = None,
) -> JsonDict:
    """Return sentences, assumptions and references of the method of an estimate.

    Parameters
    ----------
    estimate : dict
        `Estimate.to_dict`.
    design : sequence of str
        Description of the design and its sources: names in `methods.toml`, or references.
    assumption : str
        Additional assumption of this design.
    allocation : str, optional
        Rule of the allocation of labels to strata.
    selection : SelectionMethod, optional
        By default the units were drawn with this design.
    """
    description, *design_sources = design or (f"a {estimate['design']} sample",)
    selection = selection or SelectionMethod.drawn(description)
    # Methods without an entry are described by their names.
    default = {"words": estimate["estimator"], "sources": []}
    estimator = methods()["estimators"].get(estimate["estimator"], default)
    # Of methods whose limits are combined, the name is "METHOD and METHOD".
    known_intervals = methods()["intervals"]
    names = (estimate["interval_method"] or "").split(" and ")
    intervals = [known_intervals[name] for name in names if name in known_intervals]
    sentences = [
        _sample_sentence(estimate, selection, allocation),
        f"The estimate is {estimator['words']}.",
    ]
    if intervals:
        sentences.append(_interval_sentence(estimate, intervals))
    sources = [*design_sources]
    if allocation in ("neyman", "robust"):
        sources.append("neyman")
    sources += estimator["sources"]
    sources += [source for interval in intervals for source in interval["sources"]]
    lam = lam_of_groups(estimate)
    if lam is not None:
        group_method = methods()["groups"]["ppi++" if lam else "weighted"]
        lam_text = f", with λ = {lam}" if lam else ""
        sentences.append(f"The estimate of a group is {group_method['words']}{lam_text}.")
        sources += group_method["sources"]
    return {
        "sentences": sentences,
        "assumptions": _assumptions(estimate, assumption, selection),
        "references": _references(sources),
    }


def _interval_sentence(estimate: JsonMapping, intervals: Sequence[JsonMapping]) -> str:
    """Return the sentence on the interval methods, which are entries of `methods.toml`."""
    level = f"{100 * estimate['confidence_level']:g}%"
    texts = []
    for interval in intervals:
        correction = ""
        if estimate["target"] == "population":
            correction = interval.get("for_population", "")
        texts.append(f"{interval['words']}{correction}")
    extension = ", extended to the limits of another interval, "
    return f"Its {level} confidence interval is {extension.join(texts)}."


def _references(sources: Sequence[str]) -> list[str]:
    """Return each reference once; sources are names in `methods.toml`, or references."""
    return [methods()["sources"].get(name, name) for name in dict.fromkeys(sources)]


def describe_threshold_method(
    result: JsonMapping,
    design: Sequence[str],
    *,
    is_monotone: bool,
    has_rounds_by_labels: bool,
    selection: SelectionMethod | None = None,
) -> JsonDict:
    """Return sentences, assumptions and references of an accepted set (`Threshold.to_dict`).

    `design` is the description of the design and its sources, and `selection` as in `describe_method`.
    """
    description, *sources = design
    selection = selection or SelectionMethod.drawn(description)
    if is_monotone:
        test = "They are tested in a fixed sequence, so no correction for multiple tests is required."
        sources += ["clopper", "donner"]
    else:
        test = "All sets are tested together, by step-down max-t."
        sources += ["fay", "romano"]
    assumptions = [_CORRECT_LABELS, *selection.assumptions, _MISSING_AT_RANDOM]
    if has_rounds_by_labels:
        assumptions.append(
            "The sizes of rounds depend on labels: the guarantee was checked by simulation, but not proved."
        )
    return {
        "sentences": [
            f"{result['labels']:,} of {result['population_size']:,} units were labelled{selection.text}.",
            f"The {len(result['candidates']):,} candidate sets do not depend on labels, and the limit of "
            f"each is a Clopper–Pearson limit for unequal weights. {test}",
        ],
        "assumptions": assumptions,
        "references": _references(sources),
    }


def _sample_sentence(estimate: JsonMapping, selection: SelectionMethod, allocation: str | None) -> str:
    """Return the sentences on the labelled units and the design."""
    n_labelled = estimate["n"]
    if estimate["nonresponse"]:
        n_labelled = estimate["nonresponse"]["labelled"]
    sentence = f"{n_labelled:,} of {estimate['population_size']:,} units were labelled{selection.text}"
    if allocation is not None:
        sentence += f", with labels allocated to the strata by the rule {allocation!r}"
        if allocation in _ALLOCATION_TEXTS:
            sentence += f" ({_ALLOCATION_TEXTS[allocation]})"
    sentence += "."
    if estimate["n"] != n_labelled:
        sentence += f" The estimate is based on {estimate['n']:,} of them."
    return sentence


# Descriptions of the usual rules of allocation.
_ALLOCATION_TEXTS = {
    "robust": "more labels where the proxy predicts more variance, with protection against errors of the "
    "proxy",
    "neyman": "in proportion to size and expected standard deviation",
    "proportional": "in proportion to size",
}

# An assumption of every estimate and guarantee.
_CORRECT_LABELS = "The labels are correct: errors of the annotators are not corrected."

_MISSING_AT_RANDOM = "Units without a label are similar to the labelled units of their stratum."


def _assumptions(estimate: JsonMapping, assumption: str, selection: SelectionMethod) -> list[str]:
    """Return the assumptions of an estimate."""
    assumptions = [_CORRECT_LABELS, *selection.assumptions]
    nonresponse = estimate["nonresponse"]
    if nonresponse is not None and nonresponse["labelled"] < nonresponse["drawn"]:
        assumptions.append(_MISSING_AT_RANDOM)
    if estimate["target"] == "population":
        assumptions.append(
            f"The estimate is for these {estimate['population_size']:,} units, not for other kinds of units "
            "or other periods."
        )
    else:
        assumptions.append("The units themselves are a random sample from the distribution of interest.")
    if estimate["outcome"] == "unbounded":
        assumptions.append(
            "The mean of the labels is approximately normally distributed: the sample did not miss rare, "
            "very large outcomes."
        )
    if assumption:
        assumptions.append(assumption)
    if estimate["estimator"] in ("ppi++", "stratppi"):
        assumptions.append(
            "λ was fitted to the same labels. The interval includes the loss of precision, but not the "
            "small bias."
        )
    return assumptions
