"""Rules that put a unit into a stratum: small, serialisable, and the same on every engine."""

from stratal.population.rules.centres import NearestCentre
from stratal.population.rules.crossed import Crossed
from stratal.population.rules.derived import Derived
from stratal.population.rules.rule import Categories, CutPoints, Everything, Rule

__all__ = ["Categories", "Crossed", "CutPoints", "Derived", "Everything", "NearestCentre", "Rule"]
