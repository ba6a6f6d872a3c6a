"""stratal: how good is this model, when a human can only label a few hundred of its outputs?

Public names are imported on first use, so that `import stratal` loads nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stratal import designs as designs
    from stratal import errors as errors
    from stratal import estimands as estimands
    from stratal import planning as planning
    from stratal import proxy as proxy
    from stratal import regression as regression
    from stratal import simulation as simulation
    from stratal import strata as strata
    from stratal import study as study
    from stratal import testing as testing
    from stratal.designs import Sample as Sample
    from stratal.errors import InputError as InputError
    from stratal.errors import LabelError as LabelError
    from stratal.errors import StratalError as StratalError
    from stratal.errors import StratalWarning as StratalWarning
    from stratal.estimation.entry_points import estimate as estimate
    from stratal.estimation.estimate import Estimate as Estimate
    from stratal.estimation.estimates import Estimates as Estimates
    from stratal.estimation.requirement import log_to_mlflow as log_to_mlflow
    from stratal.evaluation import Evaluation as Evaluation
    from stratal.evaluation import evaluate as evaluate
    from stratal.evaluation.from_arrays import estimate_from as estimate_from
    from stratal.labels import Labels as Labels
    from stratal.labels import annotator_agreement as annotator_agreement
    from stratal.labels.label_files import read_labels as read_labels
    from stratal.metrics.comparison import Comparisons as Comparisons
    from stratal.metrics.comparison import compare as compare
    from stratal.metrics.new_version import new_version as new_version
    from stratal.planning import labels_needed as labels_needed
    from stratal.planning import next_round as next_round
    from stratal.planning.entry_points import plan as plan
    from stratal.planning.findings import findings as findings
    from stratal.planning.plan import Plan as Plan
    from stratal.planning.selection import Selection as Selection
    from stratal.planning.selection import select as select
    from stratal.population import Population as Population
    from stratal.population.distribution import Distribution as Distribution
    from stratal.proxy import Proxy as Proxy
    from stratal.regression import regress as regress
    from stratal.simulation import simulate as simulate
    from stratal.thresholds.threshold import Threshold as Threshold
    from stratal.thresholds.threshold import threshold as threshold
    from stratal.waves.trends import Trend as Trend
    from stratal.waves.trends import trend as trend


__version__ = "0.1.0"


# Module → its public names. A test compares them with the imports above.
_NAMES = {
    "designs": "Sample",
    "errors": "InputError LabelError StratalError StratalWarning",
    "estimation.entry_points": "estimate",
    "estimation.estimate": "Estimate",
    "estimation.estimates": "Estimates",
    "estimation.requirement": "log_to_mlflow",
    "evaluation": "Evaluation evaluate",
    "evaluation.from_arrays": "estimate_from",
    "labels": "Labels annotator_agreement",
    "labels.label_files": "read_labels",
    "metrics.comparison": "Comparisons compare",
    "metrics.new_version": "new_version",
    "planning": "labels_needed next_round",
    "planning.findings": "findings",
    "planning.plan": "Plan",
    "planning.entry_points": "plan",
    "planning.selection": "Selection select",
    "population": "Population",
    "population.distribution": "Distribution",
    "proxy": "Proxy",
    "regression": "regress",
    "simulation": "simulate",
    "thresholds.threshold": "Threshold threshold",
    "waves.trends": "Trend trend",
}

_MODULES_BY_NAME = {name: module for module, names in _NAMES.items() for name in names.split()}

# Subpackages and modules that are attributes of `stratal`.
_PUBLIC_MODULES = (
    *("designs", "errors", "estimands", "planning", "proxy"),
    *("regression", "simulation", "strata", "study", "testing"),
)

__all__ = ["__version__", *sorted([*_MODULES_BY_NAME, *_PUBLIC_MODULES])]


def __getattr__(name: str) -> Any:
    if name in _MODULES_BY_NAME:
        value = getattr(importlib.import_module(f"stratal.{_MODULES_BY_NAME[name]}"), name)
    elif name in _PUBLIC_MODULES:
        value = importlib.import_module(f"stratal.{name}")
    else:
        raise AttributeError(f"module 'stratal' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
