"""Write ppi_regression.json: what ppi-python says of small data sets. Run where ppi-python is installed.

    python tests/reference/generate_ppi_regression.py

The data are rounded to four digits and stored with the results: nothing depends on a random generator.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np

N_LABELLED, N_UNLABELLED, CONFIDENCE = 60, 240, 0.9


def data():
    rng = np.random.default_rng(20)
    size = N_LABELLED + N_UNLABELLED
    x = np.column_stack([np.ones(size), rng.normal(size=(size, 2))]).round(4)
    eta = x @ [0.3, -0.5, 0.8]
    linear = eta + rng.normal(size=size)
    logistic = (rng.uniform(size=size) < 1 / (1 + np.exp(-eta))).astype(float)
    poisson = rng.poisson(np.exp(eta / 2)).astype(float)
    gamma = rng.gamma(2.0, size=size)
    noise = rng.normal(size=size)
    outcomes = {
        "ols": (linear, 0.2 + 0.6 * linear + 0.5 * noise),
        "logistic": (logistic, np.clip(0.25 + 0.5 * logistic + 0.1 * noise, 0.0, 1.0)),
        "poisson": (poisson, np.abs(0.6 + 0.5 * poisson + 0.3 * noise)),
        "quantile": (gamma, 0.8 * gamma + 0.3 * noise),
    }
    rounded = {name: (y.round(4), f.round(4)) for name, (y, f) in outcomes.items()}
    return x, rng.uniform(0.5, 2.0, size).round(4), rounded


def plain(value):
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    return np.asarray(value, dtype=float).tolist()


def regressions(ppi, x, weights, outcomes):
    results = {}
    n, miss = N_LABELLED, 1 - CONFIDENCE
    for name in ("ols", "logistic", "poisson"):
        y, f = outcomes[name]
        given = (x[:n], y[:n], f[:n], x[n:], f[n:])
        point, interval = getattr(ppi, f"ppi_{name}_pointestimate"), getattr(ppi, f"ppi_{name}_ci")
        options = (
            {} if name == "ols" else {"optimizer_options": {"ftol": 1e-16, "gtol": 1e-10, "maxiter": 10_000}}
        )
        for lam in (0.0, 0.4, 1.0):
            results[f"{name} {lam}"] = {
                "point": plain(point(*given, lam=lam, **options)),
                "interval": plain(interval(*given, alpha=miss, lam=lam, **options)),
            }
        larger = interval(*given, alpha=miss, lam=0.4, alternative="larger", **options)
        results[f"{name} greater"] = {"low": plain(larger[0])}
        options |= {"w": weights[:n], "w_unlabeled": weights[n:]}
        results[f"{name} weighted"] = {
            "point": plain(point(*given, lam=0.4, **options)),
            "interval": plain(interval(*given, alpha=miss, lam=0.4, **options)),
        }
    return results


def univariate(ppi, outcomes):
    results = {}
    y, f = outcomes["quantile"]
    n, miss = N_LABELLED, 1 - CONFIDENCE
    given = (y[:n], f[:n], f[n:])
    for q in (0.25, 0.5, 0.75):
        results[f"quantile {q}"] = {
            "point": plain(ppi.ppi_quantile_pointestimate(*given, q, exact_grid=True)),
            "interval": plain(ppi.ppi_quantile_ci(*given, q, alpha=miss, exact_grid=True)),
        }
    for lam in (0.4, 1.0):
        results[f"mean {lam}"] = {"point": plain(ppi.ppi_mean_pointestimate(*given, lam=lam))}
    return results


def main():
    import ppi_py as ppi

    x, weights, outcomes = data()
    document = {
        "source": f"ppi-python {version('ppi-python')}, by generate_ppi_regression.py",
        "n_labelled": N_LABELLED,
        "confidence_level": CONFIDENCE,
        "x": plain(x),
        "weights": plain(weights),
        "outcomes": {name: plain(pair) for name, pair in outcomes.items()},
        "expected": regressions(ppi, x, weights, outcomes) | univariate(ppi, outcomes),
    }
    path = Path(__file__).with_name("ppi_regression.json")
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
