"""From arrays of evidence to bounds and p-values: no module here knows a design or an estimator."""
