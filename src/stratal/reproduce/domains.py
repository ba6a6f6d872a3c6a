"""Figure 7's setting: a classifier judged where it was trained, and where it was not."""

from __future__ import annotations

import numpy as np

from stratal.arrays import AnyArray, FloatArray
from stratal.proxy import Proxy, calibrate
from stratal.reproduce.classifiers import model, picture_patches
from stratal.reproduce.sources import Case


def shifted_domains(*, quick: bool = False, seed: int = 0) -> list[Case]:
    """Return cases in and out of distribution: vertical bands of two photographs.

    A logistic regression and its surrogate are trained to tell the pictures' patches apart on the left
    halves, and calibrated there; the bands of the right halves are out of distribution.

    Parameters
    ----------
    quick : bool
        Fewer bands and patches.
    seed : int
    """
    rng = np.random.default_rng(seed)
    bands = 2 if quick else 6
    features, picture, column = picture_patches(rng, 8_000 if quick else 30_000)
    left = np.flatnonzero(column < 320)
    train, held_out, tested = np.split(left, [len(left) // 6, len(left) // 3])
    weak = model("logistic", seed).fit(features[train[:300]], picture[train[:300]])
    strong = model("forest", seed).fit(features[train], picture[train])
    predicted = weak.predict(features)
    own, judged = (_confidence(m.predict_proba(features), predicted) for m in (weak, strong))
    z = (predicted == picture).astype(np.float64)
    curve = calibrate(judged[held_out], z[held_out], method="isotonic")
    cases = []
    for where, rows, start in (
        ("in distribution", tested, 0),
        ("out of distribution", np.flatnonzero(column >= 320), 320),
    ):
        edges = np.linspace(start, start + 320, bands + 1)
        for band in range(bands):
            kept = rows[(column[rows] >= edges[band]) & (column[rows] < edges[band + 1])]
            if len(kept) < 200 or np.ptp(z[kept]) == 0:
                continue
            proxies = {
                "f": Proxy(values=own[kept]),
                "f*": Proxy(values=judged[kept]),
                "f*c": curve.proxy(judged[kept]),
            }
            cases.append(Case(name=f"{where}, band {band + 1}", z=z[kept], proxies=proxies))
    return cases


def _confidence(probabilities: FloatArray, predicted: AnyArray) -> FloatArray:
    return np.asarray(probabilities[np.arange(len(predicted)), predicted])
