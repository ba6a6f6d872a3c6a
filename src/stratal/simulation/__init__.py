"""The laboratory: thousands of draws from populations whose outcomes are known."""

from stratal.simulation.engine import SimulatedDesign, simulate
from stratal.simulation.simulation_table import SimulationTable

__all__ = ["SimulatedDesign", "SimulationTable", "simulate"]
