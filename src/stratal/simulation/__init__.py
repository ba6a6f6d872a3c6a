"""Simulations: thousands of samples from fully labelled populations."""

from stratal.simulation.engine import simulate
from stratal.simulation.simulated_design import SimulatedDesign
from stratal.simulation.simulation_table import SimulationTable

__all__ = ["SimulatedDesign", "SimulationTable", "simulate"]
