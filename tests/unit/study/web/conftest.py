"""Studies with something to show, and their pages."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.study import StudyQuestion

pytest.importorskip("starlette")

from starlette.testclient import TestClient

from stratal.study.web.content import media_address, read_display
from stratal.study.web.server import ServerLimits, application, tokens

HOME = "http://127.0.0.1:8000"
FREE = ServerLimits(rate=1e9, burst=10**9)


def shown_population(size=60, **columns):
    """Return units whose columns annotators see; a function gives a column's value of a unit's number."""
    generator = np.random.default_rng(0)
    shown = columns or {"text": lambda number: f"The answer to question {number}."}
    return stratal.Population.from_arrays(
        proxy=generator.beta(3, 1, size),
        ids=[f"unit-{number}" for number in range(size)],
        show={
            name: np.array([*map(make, range(size)), None], dtype=object)[:-1] for name, make in shown.items()
        },
    )


def drawn_of(population, budget=20):
    return stratal.plan(population, budget).draw(seed=7)


@pytest.fixture
def drawn():
    return drawn_of(shown_population())


@pytest.fixture
def pair_study(make_study):
    sample = drawn_of(shown_population(prompt="Say {}".format, gpt="gpt {}".format, llama="llama {}".format))
    question = StudyQuestion.of_pair("Which answer is better?", "gpt", "llama")
    return make_study(sample=sample, question=question)


class Page:
    """A study's page, asked as one annotator."""

    def __init__(self, study, limits=FREE):
        self.study = study
        self.tokens = tokens(study)
        self.app = application(study, read_display(study, media_address), [HOME], limits)
        self.client = TestClient(self.app, base_url=HOME, raise_server_exceptions=False)
        self.number = 0

    def path(self, who, rest=""):
        return f"/a/{self.tokens[who]}/{rest}"

    def get(self, who, rest="", **options):
        return self.client.get(self.path(who, rest), **options)

    def state(self, who):
        return self.get(who, "api/state").json()

    def act(self, who, action, **fields):
        self.number += 1
        body = {"action": action, "request": f"r{self.number}", **fields}
        return self.client.post(self.path(who, "api/act"), json=body)


@pytest.fixture
def html_page():
    return Page


@pytest.fixture
def page(study):
    return Page(study)
