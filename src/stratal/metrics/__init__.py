"""Metrics: of classes, scores, judges, numbers and sets of tags, and comparisons of models.

An estimand is one class, whose `kind` is its name in texts, files and commands.
"""
