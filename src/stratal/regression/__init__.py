"""Prediction-powered M-estimation under any design: means, quantiles, regressions and a user's own convex
loss.

Layers, each importing only those above it: `losses` (what is minimised), `unlabelled` (sums over the
population, in memory or in batches), `solver` (Newton), `tuning` (λ), `covariance` (the sandwich),
`estimate` (the result), `estimation` (the flow), `models` (one function per regression), `quantile`,
`allocation`, `formula`.
"""

from __future__ import annotations
