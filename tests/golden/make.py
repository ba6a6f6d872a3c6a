"""Write the golden files of the installed version: `python tests/golden/make.py FOLDER`.

Run once for every version that is released, with that version; the files are never written again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import stratal
from stratal.simulation import simulate
from stratal.study import StudyQuestion, create_study


def population() -> stratal.Population:
    """Return 60 units with a proxy, a group and text."""
    numbers = np.arange(60)
    return stratal.Population.from_arrays(
        proxy=(numbers * 7 % 60) / 60,
        ids=[f"unit-{number}" for number in numbers],
        groups={"answer": np.where(numbers % 3, "cat", "dög")},
        show={"text": [f'"text" {number},\n=1' if number % 2 else None for number in numbers]},
        predicted="answer",
    )


def samples() -> dict[str, stratal.Sample]:
    """Return a sample of each design, by name."""
    units = population()
    integers = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 40), ids=np.arange(40) * 3)
    return {
        "stratified": stratal.plan(units, budget=20).draw(seed=7),
        "simple-random": stratal.designs.SimpleRandom(budget=10).draw(integers, seed=3),
        "poisson": stratal.designs.Poisson(probability=0.3).draw(units, seed=5),
        "proportional-to-size": stratal.designs.ProportionalToSize(budget=12).draw(units, seed=5),
    }


def make_study(folder: Path) -> None:
    """Write a study of the stratified sample in which two people have labelled all of it."""
    question = StudyQuestion.of_choices("Is the answer correct?", ["Pass", "Fail"])
    study = create_study(
        folder, samples()["stratified"], question, annotators=["ann", "bob"], overlap=0.25,
        journal="rollback", clock=lambda: 1_800_000_000.0,
    )  # fmt: skip
    for name in ("ann", "bob"):
        while (item := study.next_item(name)) is not None:
            study.submit(name, item.id, "Fail" if item.id.endswith("7") else "Pass")
    study.close()


def main(folder: Path) -> None:
    """Write samples as Parquet and CSV, their estimates, a plan, a simulation and a study."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, sample in samples().items():
        sample.write(folder / f"{name}.parquet")
        sample.write(folder / f"{name}.csv")
        labels = [float(len(text) % 2) for text in map(str, sample.ids.tolist())]
        result = stratal.estimate(sample, labels, estimator="horvitz-thompson", outcome="binary")
        found[name] = {"ids": sample.ids.tolist(), "labels": labels, "value": result.value,
                       "standard_error": result.standard_error}  # fmt: skip
    (folder / "estimates.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    plan = json.dumps(stratal.plan(population(), budget=20).to_dict(), indent=1, ensure_ascii=False)
    (folder / "plan.json").write_text(plan + "\n", encoding="utf-8")
    units = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 200))
    table = simulate(
        units, (np.arange(200) % 3 > 0).astype(float), designs=["simple-random", "k-means:4:proportional"],
        budgets=[20, 40], replicates=50, seed=1, store=folder / "cells.parquet",
    )  # fmt: skip
    table.to_parquet(folder / "simulation.parquet")
    make_study(folder / "study")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
