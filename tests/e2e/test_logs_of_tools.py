"""Files that the evaluation tools themselves write, in the versions that are current when the test runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.environments import node_program, python_with, run_script

import stratal
from stratal.tables.logs.reading import find_logs

TOOLS = Path(__file__).parents[1] / "tools"

# ragas 0.4.3 imports names that later versions of its dependencies have removed.
RAGAS = ("ragas==0.4.3", "openai", "langchain-community<0.4", "langchain-core<1", "langchain-openai<1")


@pytest.mark.slow
def test_results_of_ragas_and_output_items_of_openai(tmp_path):
    run_script(python_with(*RAGAS), TOOLS / "make_records.py", tmp_path, cwd=tmp_path)

    for name, proxy in (
        ("ragas.jsonl", "exact_match"),
        ("ragas.json", "exact_match"),
        ("openai.jsonl", "grader"),
    ):
        population = stratal.Population.read(tmp_path / name)
        assert (population.size, population.proxy_names[0]) == (30, proxy)
    assert set(find_logs(tmp_path).values()) == {"ragas", "OpenAI evals"}


@pytest.mark.slow
def test_logs_of_inspect_lm_eval_and_hugging_face(tmp_path):
    python = python_with("inspect_ai", "lm_eval", "evaluate", "datasets")
    writers = ("lm_eval_log", "lm_eval_dummy_log", "inspect_log", "inspect_odd_log", "hugging_face_logs")
    run_script(python, TOOLS / "make_logs.py", tmp_path / "made", *writers, cwd=tmp_path)

    logs = find_logs(tmp_path / "made")
    sizes = sizes_of_logs(logs)
    assert sizes["Inspect"] == {8, 4}
    assert sizes["lm-evaluation-harness"] == {4, 2}
    assert "Hugging Face evaluate" in sizes
    choose = [path for path in logs if path.name.startswith("samples_choose")]
    assert len(choose) == 2
    for path in choose:
        # The probability of the chosen answer among the choices.
        assert stratal.Population.read(path, proxy="confidence").size == 2


@pytest.mark.slow
def test_logs_of_deepeval(tmp_path):
    # Together with other tools, an old version would be installed.
    python = python_with("deepeval>=4")
    writers = ("deepeval_log", "deepeval_odd_log")
    run_script(python, TOOLS / "make_logs.py", tmp_path / "made", *writers, cwd=tmp_path)

    assert sizes_of_logs(find_logs(tmp_path / "made"))["DeepEval"] == {4, 1}


@pytest.mark.slow
def test_results_of_promptfoo(tmp_path):
    # The last version for Node 20.
    program = node_program("promptfoo", "0.121.20")
    for name in ("promptfoo.yaml", "echo.js"):
        shutil.copy(TOOLS / name, tmp_path)
    variables = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_CONFIG_DIR": str(tmp_path / "settings")}
    variables |= {"PROMPTFOO_DISABLE_UPDATE": "1"}
    words = ("eval", "-c", "promptfoo.yaml", "-o", "out.json", "--no-cache", "--repeat", "2")
    # Its exit status is 100, because some tests fail.
    subprocess.run(
        [program, *words], cwd=tmp_path, env=os.environ | variables, check=False, capture_output=True
    )

    population = stratal.Population.read(tmp_path / "out.json", proxy="exact@large")
    assert population.size == 8
    assert population.distribution().mean == 1
    assert set(population.levels("test").values()) == {2}


@pytest.mark.slow
def test_results_of_langsmith_are_read_and_joined_by_example(tmp_path):
    run_script(python_with("langsmith", "pandas"), TOOLS / "make_langsmith.py", tmp_path, cwd=tmp_path)

    for suffix in ("csv", "jsonl"):
        files = [tmp_path / f"model{number}.{suffix}" for number in range(2)]
        population = stratal.Population.read(files[0], missing="own-stratum")
        assert (population.size, population.proxy_names) == (30, ("correct",))
        assert population.shown_names == ("input", "target", "answer")
        difference = stratal.evaluate(files, value="correct").estimate
        assert difference.n == 29
    assert set(find_logs(tmp_path).values()) == {"LangSmith"}


def sizes_of_logs(logs):
    """Return the numbers of units of each tool's logs, all of which have a score; `.eval` needs Inspect."""
    sizes = {}
    for path, tool in logs.items():
        if path.suffix != ".eval":
            population = stratal.Population.read(path, missing="own-stratum")
            assert population.proxy_names, path
            sizes.setdefault(tool, set()).add(population.size)
    return sizes
