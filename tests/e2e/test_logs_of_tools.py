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
def test_logs_of_inspect_lm_eval_and_deepeval(tmp_path):
    python = python_with("inspect_ai", "deepeval", "lm_eval", "evaluate", "datasets")
    run_script(python, TOOLS / "make_logs.py", tmp_path / "made", cwd=tmp_path)

    logs = find_logs(tmp_path / "made")
    assert {"Inspect", "DeepEval", "lm-evaluation-harness", "Hugging Face evaluate"} <= set(logs.values())
    read = {path: stratal.Population.read(path) for path in logs if path.suffix != ".eval"}
    sizes = {tool: set() for tool in logs.values()}
    for path, population in read.items():
        assert population.proxy_names, path
        sizes[logs[path]].add(population.size)
    assert sizes["Inspect"] >= {8}
    assert sizes["DeepEval"] >= {4, 1}
    assert sizes["lm-evaluation-harness"] == {4, 2}
    choose = next(population for path, population in read.items() if "choose" in path.name)
    assert "confidence" in choose.proxy_names
