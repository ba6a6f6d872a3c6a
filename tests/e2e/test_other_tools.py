"""From another tool's log to a report, and through another tool's labels, by the lines that are printed."""

from __future__ import annotations

import csv
import hashlib
import json
import random
from pathlib import Path

import pytest

from .pasted import next_line, run, write

TOOLS = Path(__file__).parents[1] / "tools"
DOCUMENTS = 400


@pytest.fixture
def right(tmp_path, monkeypatch):
    """A log like the one that lm-eval wrote itself, of more documents; and what people would say."""
    monkeypatch.chdir(tmp_path)
    generator = random.Random(5)
    lines = [json.loads(line) for line in (TOOLS / "lm-eval-0.4.13-capitals.jsonl").read_text().splitlines()]
    true = {number: generator.random() < 0.7 for number in range(DOCUMENTS)}
    strict = {number: answer and generator.random() < 0.9 for number, answer in true.items()}
    scores = {"strict-match": strict, "flexible-extract": true}
    with Path("samples_capitals.jsonl").open("w") as file:
        for chosen, found in scores.items():
            like = next(line for line in lines if line["filter"] == chosen)
            for number in range(DOCUMENTS):
                question = f"Capital of land {number}?\nAnswer:"
                hashes = {
                    name: hashlib.sha256(f"{name} {number}".encode()).hexdigest()
                    for name in ("doc_hash", "prompt_hash", "target_hash")
                }
                own = {"doc_id": number, "arguments": {"gen_args_0": {"arg_0": question}}, **hashes}
                line = {**like, **own, "exact_match": float(found[number])}
                file.write(json.dumps(line) + "\n")
    return {f"Capital of land {number}?\nAnswer:": answer for number, answer in true.items()}


def fill(path, right):
    """Do what a person does: read the question, say Pass or Fail."""
    with Path(path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    said = [[*list(row.values())[:-1], "Pass" if right[row["input"]] else "Fail"] for row in rows]
    write(path, list(rows[0]), said)


def test_from_a_log_to_a_report_in_five_commands(right):
    doctor = "doctor samples_capitals.jsonl"
    plan = next_line(run(doctor))
    draw = next_line(run(plan))
    estimate = next_line(run(draw))
    fill("audit/to_label.csv", right)
    report = next_line(run(estimate))
    run(report)

    commands = [doctor, plan, draw, estimate, report]
    assert [line.split()[0] for line in commands] == ["doctor", "plan", "draw", "estimate", "report"]
    found = json.loads(run(f"{estimate} --json"))
    low, high = found["confidence_interval"]
    assert low <= sum(right.values()) / len(right) <= high
    (page,) = [word for word in report.split() if word.endswith(".html")]
    assert Path(page).stat().st_size < 1_000_000


def test_the_log_of_another_run_is_labels_of_the_units_that_were_drawn(right):
    run(next_line(run(next_line(run("doctor samples_capitals.jsonl")))))

    line = "estimate audit/sample.parquet samples_capitals.jsonl --value exact_match@flexible-extract --json"
    found = json.loads(run(line))

    assert found["n"] == 100
    assert any("300 units that were not drawn are left out" in note for note in found["notes"])


def test_repeats_of_a_test_are_drawn_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawing = next_line(run(f"doctor {TOOLS / 'promptfoo-0.121.20.json'}"))
    run(drawing)

    assert "--design clusters --cluster test" in drawing
    with Path("audit/to_label.csv").open(newline="") as file:
        drawn = [row["id"].split("#")[0] for row in csv.DictReader(file)]
    assert all(drawn.count(test) == 2 for test in drawn)


@pytest.mark.parametrize("to", ["csv", "excel", "jsonl"])
def test_a_study_through_a_spreadsheet(right, to):
    pytest.importorskip("openpyxl")
    plan = next_line(run("doctor samples_capitals.jsonl"))
    words = plan.removeprefix("plan ")
    run(f"draw {words} --output drawn")
    run("study new drawn --output audit --question Right? --choices Pass,Fail --annotators ann")
    path = {"csv": "items.csv", "excel": "items.xlsx", "jsonl": "items.jsonl"}[to]
    looking = next_line(run(f"study export audit --to {to} --output {path}"))
    label(Path(path), right)

    taking = next_line(run(looking))
    run(taking)
    again = run(f"{taking} --dry-run --json")

    assert json.loads(again)["same"] == 100
    assert json.loads(run("estimate audit --json"))["n"] == 100


def label(path, right):
    """Fill in the column `label` of a file that was exported."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        verdicts = [{**row, "label": "Pass" if right[row["input"]] else "Fail"} for row in rows]
        write(path, list(rows[0]), [list(row.values()) for row in verdicts])
    elif path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        verdicts = [{**line, "label": "Pass" if right[line["input"]] else "Fail"} for line in lines]
        path.write_text("".join(json.dumps(line) + "\n" for line in verdicts))
    else:
        import openpyxl

        book = openpyxl.load_workbook(path)
        names = [cell.value for cell in book.active[1]]
        for row in book.active.iter_rows(min_row=2):
            row[names.index("label")].value = "Pass" if right[row[names.index("input")].value] else "Fail"
        book.save(path)
