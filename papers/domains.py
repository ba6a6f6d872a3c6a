"""Figure 7's setting: classifiers judged on data like those they were trained on, and on others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from papers.classifiers import DIGITS, bundled, model, picture_patches
from papers.sources import Case
from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.proxy import FittedCurve, Proxy, calibrate

WHERE = ("in distribution", "out of distribution")
SETS = ("digits", "photographs")


def shifted_domains(*, quick: bool = False, seed: int = 0) -> list[Case]:
    """Return domains of both sets, named `SET, WHERE, domain`; f*c is f itself, calibrated in distribution.

    Digits: models trained on some, judged on other digits as they are (in), and on the same with noise, one
    pixel aside, at half brightness, blurred, or with the top cut off (out). Photographs: a forest that tells
    two pictures' patches apart, trained on their left halves, judged on bands of these and of the right
    halves.

    Parameters
    ----------
    quick : bool
        Digits and one model only.
    seed : int
    """
    cases = list(_digits(("logistic",) if quick else ("logistic", "small forest", "forest"), seed))
    return cases if quick else cases + list(_photographs(seed))


def _digits(families: tuple[str, ...], seed: int) -> Iterator[Case]:
    found = bundled("load_digits")
    rng = np.random.default_rng(seed)
    train, held_out, tested = np.split(rng.permutation(len(found.target)), [300, 800])
    for family in families:
        fitted = model(family, seed).fit(found.data[train], found.target[train])
        right, own = judged(fitted, found.data[held_out], found.target[held_out])
        curve = calibrate(own, right, method="isotonic")
        for name, features in corrupted(found.data[tested], rng).items():
            z, own = judged(fitted, features, found.target[tested])
            yield _case(f"digits, {WHERE[name != 'as they are']}, {family}, {name}", z, own, curve)


def judged(fitted: Any, features: FloatArray, labels: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return whether each prediction is right, and how confident the model is."""
    chances = np.round(fitted.predict_proba(features), DIGITS)
    return (chances.argmax(axis=1) == labels).astype(np.float64), chances.max(axis=1)


def _case(name: str, z: FloatArray, own: FloatArray, curve: FittedCurve) -> Case:
    return Case(name=name, z=z, proxies={"f": Proxy(values=np.clip(own, 0.0, 1.0)), "f*c": curve.proxy(own)})


def corrupted(features: FloatArray, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Return digits (M, 64) as they are and in five corruptions, by name."""
    images = features.reshape(-1, 8, 8)
    near = sum(np.roll(images, step, axis) for step in (-1, 1) for axis in (1, 2))
    cut = images.copy()
    cut[:, :3] = 0
    changed = {
        "one pixel aside": np.roll(images, 1, axis=2),
        "half brightness": images * 0.5,
        "blurred": (images + near) / 5,
        "top cut off": cut,
    }
    flat = {name: image.reshape(len(features), -1) for name, image in changed.items()}
    return {"as they are": features, "noisy": features + rng.normal(0, 6, features.shape), **flat}


def _photographs(seed: int) -> Iterator[Case]:
    rng = np.random.default_rng(seed)
    features, picture, column = picture_patches(rng, 30_000)
    left = np.flatnonzero(column < 320)
    train, held_out, tested = np.split(left, [len(left) // 6, len(left) // 3])
    fitted = model("small forest", seed).fit(features[train], picture[train])
    z, own = judged(fitted, features, picture)
    curve = calibrate(own[held_out], z[held_out], method="isotonic")
    rows: tuple[IntArray, ...] = (tested, np.flatnonzero(column >= 320))
    for where, members, start in zip(WHERE, rows, (0, 320), strict=True):
        edges = np.linspace(start, start + 320, 7)
        for band in range(6):
            kept = members[(column[members] >= edges[band]) & (column[members] < edges[band + 1])]
            if len(kept) >= 200 and np.ptp(z[kept]) > 0:
                yield _case(f"photographs, {where}, band {band + 1}", z[kept], own[kept], curve)
