"""What every test may use: the shared data (skipped where absent), and small populations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from tests import engines, tiers

import stratal

# The fast tier tries the same few cases each time; the slow one looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=10)
settings.register_profile("exploring", deadline=None, max_examples=200)
settings.load_profile("exploring" if tiers.SLOW else "repeatable")

SHARED = Path(__file__).parent.parent.parent / "shared"
if not SHARED.is_dir():
    SHARED = Path(__file__).parent.parent / "shared"

BINARY_SETS = (
    "birds_resnet50",
    "cifar10_vgg",
    "forest",
    "galaxies",
    "gsm8k_models",
    "imagenet_golden_crowd",
    "nq301_llmjudge",
)


FOLDERS_OF_REPETITIONS = (
    *("architecture", "attack", "docs", "enumeration", "papers"),
    *("property", "reference", "relations", "simulation"),
)
REPEATED = tuple(f"tests/{folder}/" for folder in FOLDERS_OF_REPETITIONS)
"""Tests that run again and again what others measure: left out of the branches that are counted."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave out of coverage, which makes loops twice as slow, what repeats the same calls."""
    if item.nodeid.startswith(REPEATED) and item.config.pluginmanager.hasplugin("pytest_cov"):
        item.add_marker(pytest.mark.no_cover)


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip("the shared data are not here")
    return SHARED


@pytest.fixture
def population() -> stratal.Population:
    """500 units, a fairly calibrated proxy, a group, text ids."""
    generator = np.random.default_rng(0)
    proxy = generator.beta(3, 1, 500)
    return stratal.Population.from_arrays(
        proxy=proxy,
        ids=[f"unit-{number}" for number in range(500)],
        groups={"language": generator.choice(["de", "en", "fr"], 500)},
    )


@pytest.fixture
def truth(population: stratal.Population) -> dict[str, float]:
    proxy = np.random.default_rng(0).beta(3, 1, 500)
    z = np.random.default_rng(1).random(500) < proxy
    return {f"unit-{number}": float(value) for number, value in enumerate(z)}


@pytest.fixture(scope="session")
def spark_cluster() -> Iterator[engines.Cluster]:
    """A Spark master and two workers."""
    with engines.spark_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session from which stratal's own come too: in this process, and in the slow tier on that cluster."""
    master = request.getfixturevalue("spark_cluster").master if tiers.SLOW else "local[2]"
    with engines.spark_session(master) as session:
        yield session


@pytest.fixture(scope="session")
def postgres() -> Iterator[engines.Server]:
    """A PostgreSQL server."""
    with engines.postgres_server() as server:
        yield server


@dataclass(frozen=True)
class Done:
    """How a command ended: its exit status, what it printed, and the message of a mistake."""

    status: int
    stdout: str
    message: str


@pytest.fixture(scope="session")
def run_command() -> Callable[..., Done]:
    """Run a subcommand in this process, as the command line would."""

    def run(*words: object) -> Done:
        from click.testing import CliRunner

        from stratal.cli.application import app

        found = CliRunner().invoke(app, [str(word) for word in words])
        return Done(found.exit_code, found.stdout, "" if found.exception is None else str(found.exception))

    return run
