"""Tracing platforms: units with scores are read, and queues, answers and results are exchanged."""
