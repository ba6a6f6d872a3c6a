"""What a population asks of the engine that holds its rows: counts, assignments, draws."""
