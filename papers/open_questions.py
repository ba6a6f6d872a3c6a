"""What the three papers leave open, each answered by one figure with this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from papers.claims import Pair
from papers.classifiers import DIGITS, bundled, model
from papers.domains import corrupted, judged
from papers.open_regression import regularised
from papers.page import Page
from papers.palette import line, panel
from papers.sources import simulated
from stratal.arrays import AnyArray, FloatArray
from stratal.population.population import Population
from stratal.proxy import Proxy, calibrate

LABELS = 100


def reproduce_open_questions(
    output: Path, *, data: Path | None = None, quick: bool = False, seed: int = 0
) -> Page:
    """Answer five questions that the papers raise and do not settle.

    Parameters
    ----------
    output : path
    data : path, optional
        Not used.
    quick : bool
        Few replicates, to see that it runs.
    seed : int

    Returns
    -------
    Page
    """
    page = Page(title="What the papers leave open", directory=output, seed=seed)
    page.opening += [
        "Five questions that the papers leave open or do not discuss. Ratios are the MSE of the method "
        "divided by the MSE of the mean of a simple random sample, n = 100; below 1 is better. The digits "
        "data set is the one in scikit-learn. The skewed strata and the regressions are **simulated**. "
        "The bands show two Monte Carlo standard errors."
    ]
    replicates = 200 if quick else 2000
    _weak_classifiers(page, replicates, seed)
    _skewed_strata(page, replicates, seed)
    _several_domains(page, replicates, seed)
    _broken_gain(page, replicates, seed)
    regularised(page, 20 if quick else 200, seed)
    page.write()
    return page


def _ratio(
    z: FloatArray, proxy: FloatArray, design: str, replicates: int, seed: int, features: Any = None
) -> Pair:
    proxies = {"proxy": Proxy(values=np.clip(proxy, 0.0, 1.0))}
    population = Population.from_arrays(proxy=proxies, features=features)
    row = simulated(population, z, design, LABELS, replicates, seed)
    return row["ratio"], row["ratio_se"]


def _drawn(
    page: Page, title: str, file: str, series: dict[str, dict[float, Pair]], x_label: str, words: str
) -> None:
    lines = [
        line(label, list(points), [v for v, _ in points.values()], [e for _, e in points.values()])
        for label, points in series.items()
    ]
    drawn = panel(title, "MSE / MSE(SRS)", lines, x_label, level_label="simple random", logarithmic="y")
    page.draw(title, [drawn], file, columns=1, words=words)
    x = sorted({place for points in series.values() for place in points})
    rows = [[f"{place:g}", *(_cell(points.get(place)) for points in series.values())] for place in x]
    page.add_table(f"{title}: numbers", [x_label, *series], rows)


def _cell(pair: Pair | None) -> str:
    return "" if pair is None else f"{pair[0]:.3f} ± {pair[1]:.3f}"


def _weak_classifiers(page: Page, replicates: int, seed: int) -> None:
    """Strata from features against strata from the model's confidence, the model trained on few items."""
    found = bundled("load_digits")
    order = np.random.default_rng(seed).permutation(len(found.target))
    rest = order[800:]
    series: dict[str, dict[float, Pair]] = {
        "own confidence": {},
        "features": {},
        "features and confidence": {},
    }
    for few in (12, 20, 40, 80, 160, 400):
        fitted = model("logistic", seed).fit(found.data[order[:few]], found.target[order[:few]])
        z, own = judged(fitted, found.data[rest], found.target[rest])
        # Ten principal directions, in units of the first: the confidence weighs as much as the strongest.
        centred = found.data[rest] - found.data[rest].mean(axis=0)
        _, scales, directions = np.linalg.svd(centred, full_matrices=False)
        scores = np.round(centred @ directions[:10].T / scales[0] * np.sqrt(len(rest)), DIGITS)
        columns = {f"x{i}": column for i, column in enumerate(scores.T)}
        both = columns | {"own": (own - own.mean()) / own.std()}
        x = float(np.round(z.mean(), 3))
        series["own confidence"][x] = _ratio(z, own, "k-means:10:proportional", replicates, seed)
        for name, features in (("features", columns), ("features and confidence", both)):
            series[name][x] = _ratio(z, own, "features:10:proportional", replicates, seed, features=features)
    _drawn(
        page,
        "Feature strata for weak classifiers",
        "open_weak.png",
        series,
        "accuracy",
        "Digits; logistic regressions trained on 12 to 400 items. The features are ten principal components.",
    )


def _skewed_strata(page: Page, replicates: int, seed: int) -> None:
    """Coverage of the normal interval and of ours where labels of a stratum are nearly all alike."""
    rng = np.random.default_rng(seed)
    panels = []
    for n in (50, 200):
        lines = []
        for label, allocation, interval in (
            ("Neyman, normal interval", "neyman", "normal"),
            ("proportional, normal interval", "proportional", "published"),
            ("stratal's default", "robust", "auto"),
        ):
            rates, covered, noise = (0.9, 0.95, 0.98, 0.99, 0.995), [], []
            for rate in rates:
                sizes = np.array([1000, 1500, 7500])
                chances = np.repeat([0.6, 0.85, rate], sizes)
                z = (rng.random(len(chances)) < chances).astype(np.float64)
                population = Population.from_arrays(proxy=chances)
                design = f"k-means:3:{allocation}"
                row = simulated(population, z, design, n, replicates, seed, intervals=(interval,))
                covered.append(row["coverage"])
                noise.append(row["coverage_se"])
            lines.append(line(label, [100 * (1 - r) for r in rates], covered, noise))
        title, x_label = f"n = {n}, simulated", "failures in the large stratum, %"
        level = {"level": 0.95, "level_label": "asked for"}
        panels.append(panel(title, "coverage", lines, x_label, logarithmic="x", **level))
    page.draw(
        "Label-skewed strata",
        panels,
        "open_skewed.png",
        columns=2,
        words="Three strata of 10, 15 and 75% with rates 0.6, 0.85 and the rate on the axis. If a stratum "
        "has no failure in the sample, its variance is estimated as 0, and a normal interval is too short.",
    )
    rows = [[part.title, one.label, *(f"{y:.3f}" for y in one.y)] for part in panels for one in part.lines]
    heads = [f"{x:g} % failures" for x in panels[0].lines[0].x]
    page.add_table("Label-skewed strata: coverage", ["setting", "method", *heads], rows)


def _several_domains(page: Page, replicates: int, seed: int) -> None:
    """One calibration curve for all domains, or one for each, from m held-out labels in all."""
    z, own, domain = _domains(seed)
    order = np.random.default_rng(seed + 1).permutation(len(z))
    held_out, kept = np.array_split(order, 2)
    series: dict[str, dict[float, Pair]] = {
        f"{name}, {rule}": {}
        for name in ("none", "one curve", "a curve for each")
        for rule in ("neyman", "robust")
    }
    for m in (60, 150, 400, 1000, 2500):
        few = held_out[:m]
        whole = calibrate(own[few], z[few], method="logistic").proxy(own[kept]).values
        each = own[kept].copy()
        for name in np.unique(domain):
            here = few[domain[few] == name]
            inside = domain[kept] == name
            if len(here) >= 5 and np.ptp(z[here]) > 0:
                curve = calibrate(own[here], z[here], method="logistic")
                each[inside] = curve.proxy(own[kept][inside]).values
            else:
                each[inside] = whole[inside]
        curves = {"none": own[kept], "one curve": whole, "a curve for each": each}
        # Machines whose sums differ in the last digit must still draw the same units.
        for name, proxy in {name: np.round(values, DIGITS) for name, values in curves.items()}.items():
            for rule in ("neyman", "robust"):
                series[f"{name}, {rule}"][float(m)] = _ratio(
                    z[kept], proxy, f"k-means:10:{rule}", replicates, seed
                )
    _drawn(
        page,
        "Calibration over several domains",
        "open_domains.png",
        series,
        "held-out labels for calibration",
        "One population of digits, unchanged and in five corruptions. Logistic calibration, one curve or "
        "six.",
    )


def _domains(seed: int) -> tuple[FloatArray, FloatArray, AnyArray]:
    found = bundled("load_digits")
    rng = np.random.default_rng(seed)
    train, tested = np.split(rng.permutation(len(found.target)), [300])
    fitted = model("logistic", seed).fit(found.data[train], found.target[train])
    parts = [
        (*judged(fitted, features, found.target[tested]), np.full(len(tested), name))
        for name, features in corrupted(found.data[tested], rng).items()
    ]
    z, own, domain = (np.concatenate(column) for column in zip(*parts, strict=True))
    return z, np.clip(own, 0.0, 1.0), domain


def _broken_gain(page: Page, replicates: int, seed: int) -> None:
    """How much noise out of distribution takes the gain away, by allocation."""
    found = bundled("load_digits")
    rng = np.random.default_rng(seed)
    train, held_out, tested = np.split(rng.permutation(len(found.target)), [300, 800])
    fitted = model("logistic", seed).fit(found.data[train], found.target[train])
    right, own = judged(fitted, found.data[held_out], found.target[held_out])
    curve = calibrate(own, right, method="isotonic")
    rules = {
        "proportional": "proportional",
        "Neyman": "neyman",
        "stratal's default": "robust",
        "stratal's second round": "two-round",
    }
    series: dict[str, dict[float, Pair]] = {name: {} for name in rules}
    for noise in (0.0, 2.0, 4.0, 6.0, 8.0, 12.0):
        features = found.data[tested] + noise * rng.normal(size=found.data[tested].shape)
        z, score = judged(fitted, features, found.target[tested])
        proxy = curve.proxy(score).values
        for name, rule in rules.items():
            series[name][noise] = _ratio(z, proxy, f"k-means:10:{rule}", replicates, seed)
    _drawn(
        page,
        "When out-of-distribution data break the gain",
        "open_broken.png",
        series,
        "standard deviation of the noise (pixels are 0 to 16)",
        "Digits. Strata and S_h are computed from a confidence that was calibrated without noise.",
    )
