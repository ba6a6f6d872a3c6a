"""Queries to the engine that holds a population's rows: counts, assignments, draws."""
