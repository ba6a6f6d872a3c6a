"""The documentation covers every public name and every command, and says what the code says."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stratal
from stratal.cli.application import app, commands
from stratal.question.vocabulary import AVERAGES

ROOT = Path(__file__).parents[2]
PAGES = [path for path in ROOT.glob("docs/**/*.md") if "decisions" not in path.parts]
COMMANDS = commands()
RUN_WHOLE = [*ROOT.glob("docs/tutorials/*.md"), ROOT / "docs" / "start" / "first-estimate.md"]
"""Pages of which commands, code and outputs are run by test_tutorials.py."""

LONG = ("proxies.md",)
"""Pages whose examples take seconds: these train models."""

EXISTING_ADDRESSES = {
    *(f"https://arxiv.org/abs/{paper}" for paper in ("2406.07320", "1607.02665", "2406.04291")),
    "https://github.com/amazon-science/ssepy",
    "https://github.com/aangelopoulos/ppi_py",
    "https://github.com/ianarawjo/evalstats",
    "https://github.com/ngmarchant/oasis",
    "https://github.com/SaifPunjwani/truescore",
    "https://github.com/samplics-org/svy",
    "https://docs.argilla.io/latest/",
    "https://github.com/davidjurgens/potato",
    "https://labelstud.io/guide/",
    "https://labelstud.io/tags/",
    "https://prodi.gy/docs/",
}
"""Addresses to which pages may link; those of packages are in the packages' own metadata."""


def all_text() -> str:
    return "\n".join(path.read_text() for path in [*PAGES, ROOT / "README.md"])


def test_every_public_name_is_documented():
    words = set(re.findall(r"\w+", all_text()))
    names = [name for name in stratal.__all__ if not name.startswith("__")]

    assert [name for name in names if name not in words] == [], "no page mentions them"
    assert [name for name in names if not getattr(stratal, name).__doc__] == []


def test_every_command_is_on_its_page():
    text = (ROOT / "docs" / "commands.md").read_text()

    assert [name for name in COMMANDS if f"## stratal {name}" not in text] == []


def test_every_command_and_option_says_what_it_is_for():
    for name, command in COMMANDS.items():
        assert command.help, name
        silent = [one.field for one in command.options if not one.help_text]
        assert silent == [], name


def choices():
    """What an option takes by name, from the place that lists it; helps load nothing and repeat it."""
    from stratal.estimation.outcome_means import ESTIMATORS
    from stratal.labels.label_files import TOOLS
    from stratal.strata import STRATIFICATION_METHODS as STRATIFIERS
    from stratal.strata.allocation import ALLOCATION_METHODS

    return {
        ("plan", "stratify"): STRATIFIERS,
        ("plan", "allocation"): [name for name in ALLOCATION_METHODS if name != "cost-optimal"],
        ("estimate", "estimator"): ESTIMATORS,
        ("study export", "to"): TOOLS,
        ("study import", "from_"): TOOLS,
    }


@pytest.mark.parametrize(("at", "names"), choices().items(), ids=lambda at: " ".join(at))
def test_a_help_names_all_that_its_option_takes(at, names):
    command, option = at
    said = {one.name: one.help for one in COMMANDS[command].params}[option]

    assert [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", said)] == []


def test_every_tool_is_on_the_page_of_tools():
    from stratal.labels.label_files import TOOLS

    page = (ROOT / "docs" / "guide" / "tools.md").read_text()
    assert [tool.title for tool in TOOLS.values() if tool.title not in page] == []


def test_every_option_is_on_the_page_of_commands():
    page = (ROOT / "docs" / "commands.md").read_text()
    for name, command in COMMANDS.items():
        section = page.split(f"## stratal {name}\n")[1].split("\n## ")[0]
        options = [one for given in command.params for one in given.opts if one.startswith("--")]
        options.remove("--help-all")
        assert [one for one in options if not re.search(rf"[`/ ]{one}[`,]", section)] == []


def kinds():
    """What users choose by name, from the places that list it."""
    from stratal.estimands import AUC, AveragePrecision
    from stratal.estimation import outcome_means
    from stratal.intervals import methods
    from stratal.metrics import class_functions
    from stratal.strata import STRATIFICATION_METHODS as STRATIFIERS
    from stratal.strata import allocation

    lists = (
        allocation.ALLOCATION_METHODS,
        methods.INTERVAL_METHOD_NAMES,
        STRATIFIERS,
        outcome_means.ESTIMATORS,
    )
    names = (*class_functions.METRICS, *AVERAGES, AUC.kind, AveragePrecision.kind)
    return sorted({*names, *(name for one in lists for name in one)})


def test_every_method_is_explained_on_a_page_of_methods():
    pages = "\n".join(path.read_text() for path in ROOT.glob("docs/methods/*.md"))
    missing = [name for name in kinds() if not re.search(rf"[`\"']{re.escape(name)}[`\"',:]", pages)]

    assert missing == [], "explain them in docs/methods"


@pytest.mark.parametrize("page", ["commands.md", "reference.md"])
def test_made_pages_are_up_to_date(page):
    namespace: dict[str, Any] = {"__name__": "docs"}
    exec((ROOT / "docs" / "make_pages.py").read_text(), namespace)

    assert (ROOT / "docs" / page).read_text() == namespace["PAGES"][page](), "run: python docs/make_pages.py"


@pytest.fixture(scope="module")
def predictions(tmp_path_factory):
    """The file that the README's example reads."""
    from stratal.simulation.demonstration import make_data, write_data

    return write_data(make_data(), tmp_path_factory.mktemp("demo") / "data")[0]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page.name in LONG else [])
        for page in PAGES
        if page not in RUN_WHOLE
    ],
    ids=lambda page: page.name,
)
def test_every_example_runs(page, predictions, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "predictions.parquet").write_bytes(predictions.read_bytes())
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"ask_a_human": lambda unit: float(not unit.endswith("7"))}
    readme = (ROOT / "README.md").read_text()
    for block in map(textwrap.dedent, blocks):
        if block not in readme:  # those are run with the lines of the shell before them
            exec(compile(block, str(page), "exec"), namespace)


def test_the_lines_of_the_readme_run_as_pasted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text().split("## Try it")[1].split("##")[0]
    lines = [shlex.split(line, comments=True)[1:] for line in re.findall(r"^stratal .*$", text, re.MULTILINE)]
    outputs = {}
    for words in lines:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (words, done.output)
        outputs[words[0]] = done.output

    assert [words[0] for words in lines] == ["demo", "plan", "draw", "demo", "estimate"]
    forecast = re.search(r"As precise as about (\d+) random labels", outputs["plan"])[1]
    assert f"The plan had forecast {forecast} random labels" in text
    shown = text.split("```text\n")[1].split("```")[0].splitlines()
    assert [line for line in shown if line not in done.output] == []
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], {})
    assert shown[:2] == capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_gain_is_the_one_that_was_measured(page):
    measured = (ROOT / "benchmarks" / "results" / "demonstration.md").read_text()
    equal = re.search(r"^\| chosen by confidence .*\| (\d+) \|$", measured, re.MULTILINE)[1]

    assert f"as precise as about {equal} random labels" in (ROOT / page).read_text()


def test_the_range_with_other_models_is_the_one_that_was_measured():
    results = ROOT / "benchmarks" / "results"
    models = re.findall(
        r"^\| ([^|]*) \| as trained \| 100 \| ([\d.]+) ",
        (results / "peer_agreement.md").read_text(),
        re.MULTILINE,
    )
    judges = re.findall(
        r"^\| [^|]* \| [^|]* \| 100 \| ([\d.]+) ",
        (results / "peer_agreement_files.md").read_text(),
        re.MULTILINE,
    )
    of_models = [float(value) for name, value in models if "fitted" not in name]
    of_judges = [float(value) for value in judges]
    home = " ".join((ROOT / "docs" / "index.md").read_text().split())

    assert f"as {100 * min(of_models):.0f} to {100 * max(of_models):.0f} random labels" in home
    assert f"as {100 * min(of_judges):.0f} to {100 * max(of_judges):.0f} ([judges]" in home


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_coverage_is_stated_with_the_condition_of_its_source(page):
    source = " ".join((ROOT / "docs" / "methods" / "intervals.md").read_text().split())
    condition = "For binary outcomes without λ, with at least two labels in each stratum, "
    measured = (ROOT / "benchmarks" / "results" / "interval_cells.md").read_text()
    groups = re.findall(r"^\| [^|]+ \| (\d+) \| \d+ \| ([\d.]+) ", measured, re.MULTILINE)
    cells = sum(int(number) for number, _ in groups)
    lowest = min(float(coverage) for _, coverage in groups)
    claim = f"{condition}the lowest coverage in {cells} cells is {lowest:.3f}"

    assert claim in source
    assert claim in " ".join((ROOT / page).read_text().split())


def test_the_lines_of_the_readme_for_a_file_run_as_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text().split("## Use your own file")[1].split("##")[0]
    lines = [shlex.split(line, comments=True)[1:] for line in re.findall(r"^stratal .*$", text, re.MULTILINE)]
    names = re.search(r"For a file with the columns\s+(.*?) \(", text)[1]
    columns = ",".join(re.findall("`(.*?)`", names)) + "\n"
    answers = ["spam" if n % 5 == 0 else "ham" for n in range(1000)]
    rows = [f"text {n},{answers[n]},{0.5 + n % 97 / 200}\n" for n in range(1000)]
    Path("messages.csv").write_text(columns + "".join(rows))
    outputs = {}
    for words in lines:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (words, done.output)
        outputs[words[0]] = done.output
        if words[0] == "draw":
            header, *units = Path("messages/to_label.csv").read_text().splitlines()
            labels = [f"{unit}{answers[int(unit.split(',')[0])]}" for unit in units]
            Path("messages/to_label.csv").write_text("\n".join([header, *labels]))

    assert list(outputs) == ["doctor", "plan", "draw", "estimate"]
    assert columns == "text,prediction,confidence\n"
    assert "--id row --proxy confidence --predicted prediction" in outputs["doctor"]
    assert header == "row,text,sample_token,label"
    assert re.search(r"recall +spam +100\.0%", outputs["estimate"])


def test_the_readme_is_short():
    words = re.findall(
        r"[A-Za-z0-9']+", re.sub(r"```.*?```|\]\([^)]*\)", "", (ROOT / "README.md").read_text(), flags=re.S)
    )

    assert len(words) < 700


def test_links_between_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", page.read_text()):
            if target.startswith(("http", "mailto")):
                assert target in EXISTING_ADDRESSES, f"{page}: {target}"
            else:
                goal = page.parent / target if target else page
                assert goal.exists(), f"{page}: {target}"
                if anchor and goal.suffix == ".md":
                    assert anchor[1:] in anchors(goal), f"{page}: {target}{anchor}"


def anchors(page):
    """Return the names under which a page's headings can be linked to."""
    from markdown.extensions.toc import slugify

    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {slugify(re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", heading), "-") for heading in headings}


def test_the_readme_has_the_two_commands():
    text = (ROOT / "README.md").read_text()

    assert "make demo" in text
    assert "make test" in text


def test_llms_txt_names_every_command_and_leads_somewhere():
    text = (ROOT / "docs" / "llms.txt").read_text()

    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 30
    for target in links:
        assert (ROOT / "docs" / target).exists(), f"docs/llms.txt: {target}; run: python docs/make_pages.py"
    for name in COMMANDS:
        assert f"[stratal {name}]" in text, "run: python docs/make_pages.py"


def test_every_command_has_a_published_schema():
    for name in COMMANDS:
        remedy = "describe it in src/stratal/cli/printed.py, then: python docs/make_pages.py"
        assert (ROOT / "docs" / "schemas" / f"{name.replace(' ', '-')}.json").exists(), remedy


def test_no_summary_of_a_command_is_cut():
    for words in ([], ["study"], ["platform"]):
        listing = CliRunner().invoke(app, [*words, "--help"], terminal_width=80).output

        assert "..." not in listing.partition("Commands:")[2]
