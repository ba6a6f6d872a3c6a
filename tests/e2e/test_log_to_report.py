"""From an lm-evaluation-harness log to a report in five commands, each as the one before printed it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from .pasted import next_line, run, write

LOG = "samples_sums_2026-11-21T10-00-00.000000.jsonl"


def sample_line(number, right):
    """One line as the harness 0.4 writes it with --log_samples."""
    return {
        "doc_id": number,
        "doc": {"question": f"What is {number} + 1?"},
        "target": str(number + 1),
        "arguments": {"gen_args_0": {"arg_0": f"Q: What is {number} + 1?", "arg_1": {"until": []}}},
        "resps": [[str(number + right)]],
        "filtered_resps": [str(number + right)],
        "filter": "strict-match",
        "metrics": ["exact_match"],
        "doc_hash": f"{number:064x}",
        "prompt_hash": f"{number + 7:064x}",
        "target_hash": f"{number + 9:064x}",
        "exact_match": float(right),
    }


def test_five_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    right = np.random.default_rng(0).random(400) < 0.8
    lines = [json.dumps(sample_line(number, int(ok))) for number, ok in enumerate(right)]
    Path(LOG).write_text("\n".join(lines) + "\n")

    commands, words = 0, f"doctor {LOG}"
    while not words.startswith("report "):
        if words.startswith("estimate "):
            rows = list(csv.DictReader(Path("audit/to_label.csv").read_text().splitlines()))
            told = [{**row, "label": int(row["answer"] == row["target"])} for row in rows]
            write("audit/to_label.csv", list(rows[0]), [list(row.values()) for row in told])
        words = next_line(run(words))
        commands += 1
    run(words)

    assert commands + 1 <= 5
    page = Path("report.html").read_text()
    assert "Share of outcomes that are 1" in page
    assert f"{100 * right.mean():.1f}%" in page or "exact_match" in page
