"""Populations: N units with proxies, in memory or in a table."""

from stratal.population.base import Drawn, Population, ProxyInfo, StratumSummary

__all__ = ["Drawn", "Population", "ProxyInfo", "StratumSummary"]
