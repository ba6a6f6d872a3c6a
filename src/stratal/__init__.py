"""stratal: how good is this model, when a human can only label a few hundred of its outputs?

Public names are imported on first use, so that `import stratal` loads nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from stratal import adaptive as adaptive
    from stratal import allocation as allocation
    from stratal import proxy as proxy
    from stratal import regression as regression
    from stratal.adaptive import extend as extend
    from stratal.adaptive import next_round as next_round
    from stratal.adaptive import opt_a1 as opt_a1
    from stratal.adaptive import opt_a2 as opt_a2
    from stratal.allocation import Allocation as Allocation
    from stratal.allocation import allocate as allocate
    from stratal.annotators import annotator_agreement as annotator_agreement
    from stratal.comparison import compare as compare
    from stratal.design import ClusterSample as ClusterSample
    from stratal.design import Design as Design
    from stratal.design import Poisson as Poisson
    from stratal.design import ProportionalToSize as ProportionalToSize
    from stratal.design import SimpleRandom as SimpleRandom
    from stratal.design import Stratified as Stratified
    from stratal.design import Systematic as Systematic
    from stratal.distribution import Distribution as Distribution
    from stratal.domains import estimate_domains as estimate_domains
    from stratal.domains import group_differences as group_differences
    from stratal.errors import BudgetError as BudgetError
    from stratal.errors import InputError as InputError
    from stratal.errors import LabelError as LabelError
    from stratal.errors import MissingExtraError as MissingExtraError
    from stratal.errors import StratalError as StratalError
    from stratal.errors import StratalWarning as StratalWarning
    from stratal.estimators.estimate import Estimate as Estimate
    from stratal.evaluation import estimate as estimate
    from stratal.label_file import read_labels as read_labels
    from stratal.labels import Labels as Labels
    from stratal.metrics import classification_metrics as classification_metrics
    from stratal.planning import Plan as Plan
    from stratal.planning import plan as plan
    from stratal.population import Population as Population
    from stratal.proxy import Proxy as Proxy
    from stratal.regression import regress as regress
    from stratal.sample import Sample as Sample
    from stratal.simulation import SimulatedDesign as SimulatedDesign
    from stratal.simulation import SimulationTable as SimulationTable
    from stratal.simulation import simulate as simulate
    from stratal.strata import Strata as Strata
    from stratal.strata import stratify as stratify
    from stratal.targets import quantile as quantile
    from stratal.targets import ranking_metrics as ranking_metrics
    from stratal.targets import ratio as ratio
    from stratal.targets import smooth_function as smooth_function

_HOMES = {
    "Allocation": "allocation",
    "BudgetError": "errors",
    "ClusterSample": "design",
    "Design": "design",
    "Distribution": "distribution",
    "Estimate": "estimators.estimate",
    "InputError": "errors",
    "LabelError": "errors",
    "Labels": "labels",
    "MissingExtraError": "errors",
    "Plan": "planning",
    "Poisson": "design",
    "Population": "population",
    "ProportionalToSize": "design",
    "Proxy": "proxy",
    "Sample": "sample",
    "SimpleRandom": "design",
    "SimulatedDesign": "simulation",
    "SimulationTable": "simulation",
    "Strata": "strata",
    "StratalError": "errors",
    "StratalWarning": "errors",
    "Stratified": "design",
    "Systematic": "design",
    "allocate": "allocation",
    "annotator_agreement": "annotators",
    "classification_metrics": "metrics",
    "compare": "comparison",
    "estimate": "evaluation",
    "estimate_domains": "domains",
    "extend": "adaptive",
    "group_differences": "domains",
    "next_round": "adaptive",
    "opt_a1": "adaptive",
    "opt_a2": "adaptive",
    "plan": "planning",
    "quantile": "targets",
    "ranking_metrics": "targets",
    "ratio": "targets",
    "read_labels": "label_file",
    "regress": "regression",
    "simulate": "simulation",
    "smooth_function": "targets",
    "stratify": "strata",
}
"""Public name → the module that it lives in."""

_MODULES = ("adaptive", "allocation", "proxy", "regression")
"""Modules that are public under their own name."""

__all__ = ["__version__", *sorted([*_HOMES, *_MODULES])]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"stratal.{_HOMES[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"stratal.{name}")
    else:
        raise AttributeError(f"module 'stratal' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
