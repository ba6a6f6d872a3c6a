"""Populations: N units with proxies, in memory or in a table."""

import stratal.population.building  # noqa: F401  (it registers the constructors of `Population`)
from stratal.population.drawn_units import DrawnUnits
from stratal.population.population import Population
from stratal.population.proxy_info import ProxyInfo
from stratal.population.summary import StratumSummary

__all__ = ["DrawnUnits", "Population", "ProxyInfo", "StratumSummary"]
