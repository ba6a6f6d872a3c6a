"""What every test may use: the shared data (skipped where absent), and small populations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from tests import engines

import stratal

# The usual run tries the same cases each time; `make test-slow` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("exploring", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

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


@pytest.fixture
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
def spark(spark_cluster: engines.Cluster) -> Iterator[Any]:
    """A session on that master, from which stratal's own sessions come too."""
    with engines.spark_session(spark_cluster.master) as session:
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


@pytest.fixture
def run_command() -> Callable[..., Done]:
    """Run a subcommand in this process, as the command line would."""

    def run(*words: object) -> Done:
        from click.testing import CliRunner

        from stratal.cli.application import app

        found = CliRunner().invoke(app, [str(word) for word in words])
        return Done(found.exit_code, found.stdout, "" if found.exception is None else str(found.exception))

    return run
