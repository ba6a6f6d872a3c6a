"""The laboratory: thousands of draws from populations whose outcomes are known."""

from stratal.simulation.design import SimulatedDesign
from stratal.simulation.engine import simulate
from stratal.simulation.table import SimulationTable

__all__ = ["SimulatedDesign", "SimulationTable", "simulate"]
