"""Columns with texts and images are recognised by their names."""

from __future__ import annotations

import pytest

from stratal.question.content import content_columns


@pytest.mark.parametrize(
    ("names", "used", "content"),
    [
        (["id", "confidence", "Text", "image"], ["id"], ["Text", "image"]),
        (["question", "score"], ["question"], []),
        (["predicted", "answer", "label"], [], []),
    ],
)
def test_texts_and_images_are_content_and_answers_are_not(names, used, content):
    assert content_columns(names, used) == content


def test_the_next_command_of_a_plan_shows_the_texts(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{k},.{k % 10},text {k}" for k in range(60))
    (tmp_path / "p.csv").write_text(f"id,score,text\n{rows}\n")

    planned = run_command("plan", "p.csv", "--proxy", "score", "--budget", "20")
    drawn = run_command("draw", "p.csv", "--proxy", "score", "--budget", "20", "--output", "a")
    shown = run_command(
        "draw", "p.csv", "--proxy", "score", "--budget", "20", "--show", "text", "--output", "b"
    )

    assert "--show text" in planned.stdout
    assert "Annotators will see only the ids; --show text adds columns." in drawn.stdout
    assert "only the ids" not in shown.stdout
