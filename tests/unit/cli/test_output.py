"""Data is printed as it is: never markup, never a command to the terminal, in any encoding."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time

import pytest
from tests.tiers import cells

from stratal.cli import output
from stratal.cli.output import escape_control_characters, print_json, print_table
from stratal.report.text import ReportTable

COMMAND = [sys.executable, "-c", "from stratal.cli import main; main()"]
LEVELS = [
    "[/INST]",
    "[other]",
    ":x:",
    "[red]a[/red]",
    "λ",
    "中文",
    "\x1b[2J",
    "[bold",
    "\\[x]",
    "[link=a]b[/link]",
]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("terminals") / "p.jsonl"
    rows = [{"id": f"u{k}", "proxy": k / 40, "[/x]:x:": LEVELS[k % len(LEVELS)]} for k in range(40)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def run(*words, **environment):
    result = subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, check=False, env={**os.environ, **environment}
    )
    return result.returncode, result.stdout, result.stderr


@pytest.mark.parametrize(
    "encoding", cells(["utf-8", "cp1252", "ascii", "cp932", "utf-16"], fast=("ascii", "utf-16"))
)
@pytest.mark.parametrize("form", ["--json", "--details"], ids=["json", "text"])
def test_levels_are_printed_as_they_are_in_any_encoding(file, encoding, form):
    code, out, err = run(
        *(
            "plan",
            file,
            "--proxy",
            "proxy",
            "--budget",
            20,
            "--stratify",
            "category",
            "--by",
            "[/x]:x:",
            form,
        ),
        PYTHONIOENCODING=encoding,
    )
    text, json_form = out.decode(encoding), form == "--json"

    assert code == 0, err
    shown = [entry["name"] for entry in json.loads(text)["strata"]] if json_form else text
    for level in ["[/INST]", "[other]", ":x:", "[red]a[/red]", "[bold", "[link=a]b[/link]"]:
        assert any(level in name for name in shown) if json_form else level in shown
    assert "\x1b" not in text
    if not json_form:
        assert "'[/x]:x:'" in text.splitlines()[-1]


@pytest.mark.parametrize("closed", cells([">&-", "2>&-", ">&- 2>&-"], fast=(">&- 2>&-",)))
@pytest.mark.parametrize("words", ["doctor", "doctor --json", "plan --budget 20 --proxy proxy"])
def test_a_stream_that_the_caller_closed_is_no_mistake(file, closed, words):
    command, _, rest = words.partition(" ")
    line = f'"$0" -m stratal {command} "$1" {rest} {closed}'
    done = subprocess.run(["sh", "-c", line, sys.executable, str(file)], capture_output=True, check=False)

    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


COMMANDING = ["\x9b2J", "\x7f", "\u202etxt", "\u2066a", "\u2028b"]


@pytest.mark.parametrize("text", COMMANDING)
def test_no_text_moves_the_cursor_or_turns_the_line_around(text, capsys):
    print_json({"level": text})
    print_table(ReportTable(header=[text], rows=[[text]]))
    said = capsys.readouterr().out

    assert text[0] not in said
    assert json.loads(said[: said.index("}") + 1]) == {"level": text}


def test_joined_letters_and_marks_stay_as_they_are():
    families = "👨\u200d👩\u200d👧 a\u200fb e\u0301"
    assert escape_control_characters(families) == families


@pytest.mark.parametrize("words", [["--help"], ["plan", "--help"], ["nothing"], ["plan", "[/INST]:x:.csv"]])
def test_help_and_mistakes_in_an_encoding_without_greek(words):
    code, _, err = run(*words, PYTHONIOENCODING="ascii")

    assert code in (0, 2)
    assert b"Traceback" not in err
    if "[/INST]:x:.csv" in words:
        assert b"[/INST]:x:.csv: no such file" in err


def test_an_option_with_markup_is_named_as_it_is(file):
    code, _, err = run("plan", file, "--proxy", "[/INST]:x:", "--budget", 10)

    assert code == 2
    assert b"'[/INST]:x:'" in err


def test_a_title_longer_than_its_table_is_one_line(capsys):
    title = "Agreement: Krippendorff's alpha (nominal) 1; 0 disagreements open, 0 decided"
    print_table(ReportTable(title=title, header=["pair", "shared"], rows=[["ann, bob", 8]]))
    assert capsys.readouterr().out.splitlines()[1] == title


def test_of_a_huge_table_the_first_rows_are_printed(capsys):
    print_table(
        ReportTable(header=["stratum", "units"], rows=[[f"s{number}", number] for number in range(3000)])
    )

    printed = capsys.readouterr().out
    assert "s299 " in printed
    assert "s300 " not in printed
    assert "… and 2,700 more: see --json or to_dict()" in printed


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_is_told_how_far_a_command_is_and_then_wiped(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(output, "PROGRESS_SECONDS", 0.001)

    with output.show_progress("simulating") as advance:
        advance(1, 4)
        while "simulating 25%, 0 s" not in terminal.getvalue():
            time.sleep(0.001)

    *_, told, blank, nothing = terminal.getvalue().split("\r")
    assert (told, blank.strip(), nothing) == ("simulating 25%, 0 s", "", "")
    assert len(blank) == len(told)


def test_what_is_quick_tells_nothing_and_a_file_is_told_nothing(monkeypatch):
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)

        with output.show_progress("counting") as advance:
            assert (advance is None) != stream.isatty()

        assert stream.getvalue() == ""


def test_a_terminal_that_is_closed_ends_no_command(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(output, "PROGRESS_SECONDS", 0.001)

    with output.show_progress("counting"):
        terminal.close()


def test_a_terminal_gets_lines_of_its_width_and_a_file_whole_sentences(monkeypatch, capsys):
    sentence = " ".join(["word"] * 40)
    output.print_sentences([sentence])
    assert capsys.readouterr().out == f"{sentence}\n"

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(output, "get_terminal_size", lambda: os.terminal_size((60, 24)))
    output.print_sentences([sentence, "  short  line"])

    *lines, last = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert " ".join(lines) == sentence
    assert last == "  short  line"
