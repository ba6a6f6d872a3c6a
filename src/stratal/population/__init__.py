"""Populations: N units with proxies, in memory or in a table."""

import stratal.population.from_arrays
import stratal.population.from_tables  # noqa: F401  (each enters what it makes)
from stratal.population.population import Population
from stratal.population.summary import Drawn, ProxyInfo, StratumSummary

__all__ = ["Drawn", "Population", "ProxyInfo", "StratumSummary"]
