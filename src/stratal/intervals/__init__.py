"""Confidence intervals: arrays and scalars in, bounds out. No module here knows a design or an estimator."""
