"""A small study, a clock that tests set, and the sample that it is made from."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.study import StudyQuestion, create_study


class Clock:
    """A clock that is set by hand; every look at it takes a second."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock():
    return Clock()


def population_of(size):
    generator = np.random.default_rng(0)
    ids = [f"unit-{number}" for number in range(size)]
    return stratal.Population.from_arrays(
        proxy=generator.beta(3, 1, size), ids=ids, groups={"language": generator.choice(["de", "en"], size)}
    )


@pytest.fixture(scope="session")
def drawn():
    return stratal.plan(population_of(300), 40).draw(seed=7)


@pytest.fixture(scope="session")
def question():
    return StudyQuestion.of_choices("Is the answer correct?", ["Pass", "Fail"])


@pytest.fixture
def make_study(tmp_path, drawn, question, clock):
    """Return a function that makes a study; further arguments as `create_study`'s."""
    made = []

    def make(**options):
        given = {"sample": drawn, "question": question, "annotators": ["ann", "bob"], "clock": clock}
        study = create_study(tmp_path / f"study-{len(made)}", **(given | options))
        made.append(study)
        return study

    yield make
    for study in made:
        study.close()


@pytest.fixture
def study(make_study):
    return make_study(overlap=0.25)


def answer_all(study, annotator, choose=lambda item: "Pass"):
    """Answer everything that an annotator is given; return the ids in their order."""
    seen = []
    while (item := study.next_item(annotator)) is not None:
        study.submit(annotator, item.id, choose(item))
        seen.append(item.id)
    return seen
