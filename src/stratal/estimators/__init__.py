"""Estimators: each turns outcome and proxies into one per-unit variable and a known total."""
