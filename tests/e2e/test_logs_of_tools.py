"""Files that the evaluation tools themselves write, in the versions that are current when the test runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.environments import python_with, run_script

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
    writers = ("lm_eval_log", "inspect_log", "inspect_odd_log", "hugging_face_logs")
    run_script(python, TOOLS / "make_logs.py", tmp_path / "made", *writers, cwd=tmp_path)

    logs = find_logs(tmp_path / "made")
    sizes = sizes_of_logs(logs)
    assert sizes["Inspect"] == {8, 4}
    assert sizes["lm-evaluation-harness"] == {4, 2}
    assert "Hugging Face evaluate" in sizes
    [choose] = [path for path in logs if path.name.startswith("samples_choose")]
    # The probability of the chosen answer among the choices.
    assert stratal.Population.read(choose, proxy="confidence").size == 2


@pytest.mark.slow
def test_logs_of_deepeval(tmp_path):
    # Together with other tools, an old version would be installed.
    python = python_with("deepeval>=4")
    writers = ("deepeval_log", "deepeval_odd_log")
    run_script(python, TOOLS / "make_logs.py", tmp_path / "made", *writers, cwd=tmp_path)

    assert sizes_of_logs(find_logs(tmp_path / "made"))["DeepEval"] == {4, 1}


def sizes_of_logs(logs):
    """Return the numbers of units of each tool's logs, all of which have a score; `.eval` needs Inspect."""
    sizes = {}
    for path, tool in logs.items():
        if path.suffix != ".eval":
            population = stratal.Population.read(path, missing="own-stratum")
            assert population.proxy_names, path
            sizes.setdefault(tool, set()).add(population.size)
    return sizes
