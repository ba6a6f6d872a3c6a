"""`stratal skill`: the commands for agents, described from their declared options."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from stratal.cli.command import Command, Option, command
from stratal.cli.output import Result
from stratal.errors import InputError

SUMMARY = (
    "Choose which outputs of a model people label, and estimate its quality from the labels with a valid "
    "interval. Use it to evaluate a model, an LLM application or an LLM judge with few human labels, to "
    "check a requirement such as accuracy >= 0.9, or to compare models."
)

RULES = (
    "Ask how the labelled rows were chosen, and pass the answer with `--chosen`. Labels of rows that "
    "somebody picked do not represent the other rows; `--chosen unknown` gives no verdict.",
    "Never average the labels of a sample that `draw` wrote: its rows have different weights. Use "
    "`estimate`.",
    "Never treat the proxy (a judge, a score, a confidence) as truth. It reduces the number of labels, but "
    "only labels are evidence. Do not fill in labels yourself: ask the user who will provide them.",
    "Report the interval with the value. UNDECIDED is a result: report how many more labels would decide.",
    "Keep sample.parquet: the estimate needs it. Do not change ids, or the order of rows if ids are row "
    "numbers.",
    "Continue with the command after `Next:` unless the user wants something else.",
    "Add `--json` to read a result with a program. Exit status: 0 success, 2 an error with one message, "
    "4 FAIL and 5 UNDECIDED of a requirement.",
)

# Command, in the order of work → when to use it, and the fields of the options that most tasks need.
USES = {
    "doctor": (
        "First, for any file: recognise the columns and print the next command.",
        "id proxy predicted",
    ),
    "plan": (
        "Before labelling: compute the precision of a budget, or the budget for a precision.",
        "proxy predicted judge budget half_width estimand output",
    ),
    "draw": ("Choose the rows to label, from a plan or directly.", "proxy predicted budget show seed output"),
    "estimate": (
        "When labels exist: compute the value, its interval and the verdict on requirements.",
        "predicted chosen judge by metric compare require against format",
    ),
    "report": ("Write a page for readers, with the same options as `estimate`.", "require output"),
    "study new": (
        "Let people label on a local page instead of in a file.",
        "question choices annotators output",
    ),
    "platform read": (
        "When the outputs are traces in MLflow, Phoenix or Langfuse: write them with their scores to a file.",
        "output since until",
    ),
    "platform queue": (
        "After `draw`: let people label on that platform. Then `platform labels` reads their answers.",
        "choices question",
    ),
    "threshold": ("Find the outputs that can be accepted without review.", "require score"),
    "trend": ("Compare weeks: level, change and alarm.", "wave require"),
    "select": ("Find the best of several models with few labels.", "answers judge budget output"),
}

SKILL_NAME = "SKILL.md"
# The first lines of the file, by which a file of an earlier version is recognised.
_FRONT_MATTER = "---\nname: stratal\n"


def skill_text() -> str:
    """Return the SKILL.md: when to use which command, the rules, and the most frequent options."""
    from stratal.cli.application import commands

    lines = [f"{_FRONT_MATTER}description: {SUMMARY}\n---", "", "# stratal", "", SUMMARY, "", "## Rules", ""]
    lines += [f"- {rule}" for rule in RULES]
    lines += ["", "## Commands", "", "All options: `stratal COMMAND --help-all`."]
    loaded = commands(*USES)
    for name, (use, fields) in USES.items():
        lines += ["", f"### stratal {usage(loaded[name])}", "", use, ""]
        options = {entry.field: entry for entry in loaded[name].options}
        lines += [f"- {_option_line(options[field])}" for field in fields.split()]
    return "\n".join(lines) + "\n"


def usage(described_command: Command) -> str:
    """Return the name of a command with its arguments."""
    return " ".join(
        [
            str(described_command.name),
            *(str(entry.metavar) for entry in described_command.options if entry.is_positional),
        ]
    )


def _option_line(option: Option) -> str:
    """Return the name, placeholder and help of an option."""
    usage = f"{option.name} {option.metavar or ''}".rstrip()
    return f"`{usage}`: {option.help_text}"


class SkillOptions(Struct, frozen=True, kw_only=True):
    """The options of `skill`.

    Parameters
    ----------
    output : PATH
        Directory to write to, such as a directory named stratal in an agent's skills directory.
    """

    output: Path = Path("stratal")


@command(SkillOptions)
def skill(requested: SkillOptions) -> Result:
    """Write a SKILL.md for agents, with the command for each task.

    A SKILL.md that an earlier version wrote is replaced; other files are kept.
    """
    path = requested.output / SKILL_NAME
    text = skill_text()
    try:
        if path.exists() and not path.read_text(encoding="utf-8").startswith(_FRONT_MATTER):
            action = "Choose another --output."
            raise InputError(f"{path} was not written by stratal, so it is kept", action=action)
        requested.output.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be written ({error})", action="Choose another --output.") from None
    return Result({"skill": str(path)}, f"Skill: {path}")
