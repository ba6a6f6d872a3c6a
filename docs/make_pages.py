"""Writes docs/commands.md from the help, docs/reference.md from the docstrings, and docs/schemas.

A test fails if a page is out of date. `make docs` takes the pages of the reference from here too.
"""

from __future__ import annotations

import operator
import re
from pathlib import Path
from typing import Any


def command_page() -> str:
    """Return the page: every command, its arguments and options."""
    from stratal.cli.application import commands

    parts = [
        "# The command",
        "`--help` shows the options that most people need, and `--help-all` shows all of them.",
        "With `--json`, every command prints one object on standard output and nothing else. The exit status is 0 for "
        "success; 2 for an error, with one message on standard error and nothing written; 3 if `study check` or "
        "`study backup` finds that a study or its copy is damaged; 4 if a requirement of `estimate` is not met, and 5 "
        "if it is undecided; 130 for Ctrl-C. For more details, see [automation](guide/machines.md).",
    ]
    for name, command in commands().items():  # in the order of work, as in the help
        parts += [f"## stratal {name}", clean(command.help or ""), *table(command)]
    return "\n\n".join(parts) + "\n"


def clean(text: str) -> str:
    """Return text with its paragraphs kept and its line breaks taken out."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def table(command: Any) -> list[str]:
    """Return a table of the parameters of a command."""
    rows = ["| argument or option | meaning | default |", "|---|---|---|"]
    about = {entry.field: entry.help_text for entry in command.options}
    for parameter in command.params:
        if "--help-all" in parameter.opts:
            continue
        is_option = parameter.param_type_name == "option"
        name = ", ".join(parameter.opts) if is_option else (parameter.metavar or parameter.name or "").upper()
        default = parameter.default
        shown = f"`{default}`" if isinstance(default, str | float | int) and default is not False else ""
        if parameter.required:
            shown = "required"
        if isinstance(getattr(parameter, "show_default", None), str):
            shown = parameter.show_default
        meaning = re.sub(r"\s+", " ", about.get(parameter.name) or parameter.help).replace("|", "\\|")
        rows.append(f"| `{name}` | {meaning} | {shown} |")
    return ["\n".join(rows)]


def reference_page() -> str:
    """Return the page: every public name by topic, with the first sentence of its docstring."""
    import stratal

    errors = {f"errors.{name}" for name in set(stratal.errors.__all__) - set(stratal.__all__)}
    names = sorted((set(stratal.__all__) - {"__version__"}) | errors, key=lambda name: (name.lower(), name))
    topic_of = {name: topic(operator.attrgetter(name)(stratal)) for name in names}
    parts = [
        "# Python API",
        "This page lists the public names by topic. The docstring of each name describes shapes, errors and the source, "
        "and contains an example. To read a docstring, use `help`, as in `help(stratal.plan)`.",
    ]
    for title in (*SUBPACKAGES.values(), MODULES):
        rows = [name_row(name) for name in names if topic_of[name] == title]
        if rows:
            parts += [f"## {title}", "\n".join(["| name | what it is |", "|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def topic(value: Any) -> str:
    """Return the heading of the API page below which a public object is listed."""
    import inspect

    if inspect.ismodule(value):
        return MODULES
    return SUBPACKAGES.get(subpackage_of(value), MODULES)


def name_row(name: str) -> str:
    """Return the row of a public name with the first sentence of its docstring."""
    import inspect

    import stratal

    value = operator.attrgetter(name)(stratal)
    summary = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split()).replace("|", "\\|")
    shown = f"stratal.{name}" + ("" if inspect.isclass(value) or inspect.ismodule(value) else "()")
    return f"| `{shown}` | {summary} |"


MODULES = "Modules"
"""Heading of the API page for what belongs to no topic."""

SUBPACKAGES = {
    "population": "Population",
    "proxy": "Proxies",
    "designs": "Designs and samples",
    "strata": "Strata",
    "labels": "Labels",
    "intervals": "Intervals",
    "estimation": "Estimates",
    "metrics": "Metrics and comparisons",
    "regression": "Regression",
    "evaluation": "Evaluations",
    "thresholds": "Thresholds",
    "waves": "Waves over time",
    "planning": "Plans and rounds",
    "simulation": "Simulation",
    "study": "Studies",
    "errors": "Errors",
}
"""Subpackage with a page of the reference → title of the page."""


def public_values() -> dict[str, list[tuple[str, str]]]:
    """Return, by subpackage, (name as a user writes it, place of its docstring) of every public function and class."""
    import importlib

    import stratal

    found: dict[str, list[tuple[str, str]]] = {}
    for subpackage in SUBPACKAGES:
        module = importlib.import_module(f"stratal.{subpackage}")
        names = [
            (f"stratal.{name}", getattr(stratal, name)) for name in stratal.__all__ if name != "__version__"
        ]
        names = [(name, value) for name, value in names if subpackage_of(value) == subpackage]
        taken = {id(value) for _, value in names}
        inner = [(f"stratal.{subpackage}.{name}", getattr(module, name)) for name in getattr(module, "__all__", ())]
        names += [(name, value) for name, value in inner if id(value) not in taken and subpackage_of(value) == subpackage]
        found[subpackage] = [(name, f"{value.__module__}.{value.__qualname__}") for name, value in names]
    return found


def subpackage_of(value: Any) -> str:
    """Return the subpackage that defines a public function or class, "" for anything else."""
    place = getattr(value, "__module__", "") or ""
    subpackages = [subpackage for subpackage in SUBPACKAGES if f"{place}.".startswith(f"stratal.{subpackage}.")]
    return max(subpackages, key=len, default="") if callable(value) else ""


def reference_pages() -> dict[str, str]:
    """Return path in the site → page of the reference, one for each subpackage, in which mkdocstrings inserts the docstrings."""
    return {
        f"reference/{subpackage.rpartition('.')[2]}.md": f"# {SUBPACKAGES[subpackage]}\n\n"
        + "\n\n".join(f"::: {place}\n    options:\n      heading: {name}" for name, place in values)
        + "\n"
        for subpackage, values in public_values().items()
        if values
    }


def linked_names(page: str) -> str:
    """Return the page of public names with each one linked to its docstring."""
    for values in public_values().values():
        for name, place in values:
            page = re.sub(rf"`{re.escape(name)}(\(\))?`", rf"[`{name}\1`][{place}]", page)
    return page


def schemas() -> dict[str, str]:
    """Return the JSON Schema of every command, by the file's name."""
    import json

    from stratal.cli.printed import PRINTED, WRITTEN, command_schema

    names = {name: f"{name.replace(' ', '-')}.json" for name in sorted({**PRINTED, **WRITTEN})}
    return {file: json.dumps(command_schema(name), indent=2) + "\n" for name, file in names.items()}


SHELVES = {
    "Start": "start/*.md",
    "Tutorials": "tutorials/*.md",
    "How to": "how-to/*.md",
    "Guides": "guide/*.md",
    "Methods": "methods/*.md",
    "Alternatives": "alternatives/*.md",
    "Reference": "*.md",
}
"""Headings of llms.txt and the pages below them."""


def llms_text() -> str:
    """Return llms.txt (llmstxt.org): what there is to read, for language models and their agents."""
    from stratal.cli.application import commands
    from stratal.cli.skill import RULES, SUMMARY, USES

    docs = Path(__file__).parent
    lines = [
        "# stratal",
        "",
        f"> {SUMMARY}",
        "",
        "Every command has a JSON Schema: `stratal schema COMMAND`, or schemas/COMMAND.json (study-status.json). "
        "`stratal skill` writes a SKILL.md with these rules, and `stratal mcp` serves the commands as tools.",
        "",
        "## Rules",
        "",
        *(f"- {rule}" for rule in RULES),
    ]
    for shelf, pattern in SHELVES.items():
        pages = [page for page in sorted(docs.glob(pattern)) if page.name != "index.md"]
        lines += ["", f"## {shelf}", ""]
        lines += [f"- [{heading(page)}]({page.relative_to(docs).as_posix()})" for page in pages]
    lines += ["", "## Commands", ""]
    for name, command in commands().items():  # in the order of work, as in the help
        use = USES[name][0] if name in USES else clean(command.help or "").splitlines()[0]
        lines.append(f"- [stratal {name}](schemas/{name.replace(' ', '-')}.json): {use}")
    return "\n".join(lines) + "\n"


def heading(page: Path) -> str:
    """Return the first heading of a page."""
    found = re.search(r"^# (.+)$", page.read_text(), re.MULTILINE)
    return found[1].replace("`", "") if found else page.stem


PAGES = {"commands.md": command_page, "reference.md": reference_page}

if __name__ == "__main__":
    for page_name, make in PAGES.items():
        Path(__file__).with_name(page_name).write_text(make())
    folder = Path(__file__).with_name("schemas")
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    for file_name, text in schemas().items():
        (folder / file_name).write_text(text)
    Path(__file__).with_name("llms.txt").write_text(llms_text())
