"""stratal: how good is this model, when a human can only label a few hundred of its outputs?

Public names are imported on first use, so that `import stratal` loads nothing else.
"""

from __future__ import annotations

from typing import Any, TYPE_CHECKING
import importlib

if TYPE_CHECKING:
    from stratal import designs as designs, estimands as estimands, proxy as proxy, strata as strata, study as study
    from stratal.designs import ClusterSample as ClusterSample, Design as Design, Poisson as Poisson, ProportionalToSize as ProportionalToSize, Sample as Sample, SimpleRandom as SimpleRandom, Stratified as Stratified, Systematic as Systematic
    from stratal.designs.margins import fit_margins as fit_margins, post_stratify as post_stratify
    from stratal.errors import BudgetError as BudgetError, InputError as InputError, LabelError as LabelError, MissingExtraError as MissingExtraError, RequirementError as RequirementError, StratalError as StratalError, StratalWarning as StratalWarning
    from stratal.estimation import regression as regression
    from stratal.estimation.comparison import Comparisons as Comparisons, compare as compare
    from stratal.estimation.estimate import Estimate as Estimate, Estimates as Estimates
    from stratal.estimation.evaluation import estimate as estimate, estimate_from as estimate_from
    from stratal.estimation.new_version import new_version as new_version
    from stratal.estimation.regression import regress as regress
    from stratal.estimation.requirement import log_to_mlflow as log_to_mlflow, require as require
    from stratal.labels import Labels as Labels, annotator_agreement as annotator_agreement, read_labels as read_labels
    from stratal.planning import labels_needed as labels_needed, next_round as next_round, opt_a1 as opt_a1, opt_a2 as opt_a2
    from stratal.planning.findings import Findings as Findings, findings as findings
    from stratal.planning.plan import Plan as Plan, plan as plan
    from stratal.population import Population as Population
    from stratal.population.distribution import Distribution as Distribution
    from stratal.proxy import Proxy as Proxy
    from stratal.simulation import SimulatedDesign as SimulatedDesign, SimulationTable as SimulationTable, simulate as simulate
    from stratal.strata import Allocation as Allocation, SharedAllocation as SharedAllocation, Strata as Strata, allocate as allocate, allocate_several as allocate_several, stratify as stratify
    from stratal.study.web.notebook import annotate as annotate
    from stratal import planning as adaptive  # noqa: F401


__version__ = "0.1.0"


_NAMES = {
    "designs": "ClusterSample Design Poisson ProportionalToSize Sample SimpleRandom Stratified Systematic",
    "designs.margins": "fit_margins post_stratify",
    "errors": "BudgetError InputError LabelError MissingExtraError RequirementError StratalError "
    "StratalWarning",
    "estimation.comparison": "Comparisons compare",
    "estimation.estimate": "Estimate Estimates",
    "estimation.evaluation": "estimate estimate_from",
    "estimation.new_version": "new_version",
    "estimation.regression": "regress",
    "estimation.requirement": "log_to_mlflow require",
    "labels": "Labels annotator_agreement read_labels",
    "planning": "labels_needed next_round opt_a1 opt_a2",
    "planning.findings": "Findings findings",
    "planning.plan": "Plan plan",
    "population": "Population",
    "population.distribution": "Distribution",
    "proxy": "Proxy",
    "simulation": "SimulatedDesign SimulationTable simulate",
    "strata": "Allocation SharedAllocation Strata allocate allocate_several stratify",
    "study.web.notebook": "annotate",
}
"""Module → the public names that live in it; a test holds it against the imports above."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

_ROOMS = {
    "adaptive": "planning",
    "regression": "estimation.regression",
    **{name: name for name in ("designs", "estimands", "proxy", "strata", "study")},
}
"""Modules that are public as such; `adaptive` is the former name of the attribute `planning`."""

__all__ = ["__version__", *sorted([*_HOMES, *_ROOMS])]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"stratal.{_HOMES[name]}"), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"stratal.{_ROOMS[name]}")
    else:
        raise AttributeError(f"module 'stratal' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
