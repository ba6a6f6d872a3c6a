"""Logs of evaluation tools as tables: one row per unit, scores as proxies or labels; one file per tool."""
