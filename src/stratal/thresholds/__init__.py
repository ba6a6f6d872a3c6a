"""Which threshold of a score: accepted sets with a guarantee, curves with bands, calibration."""
