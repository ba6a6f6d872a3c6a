"""λ from what the labels of either class show of the proxy, for one stratum with few labels of one class.

The covariance of an outcome of 0 and 1 with a proxy is θ(1 − θ) times the distance between the classes' mean
proxies. Where positives are rare, a sample with too many of them overstates θ and with it λ, just where λ
has most to mend. Here θ is the estimate that λ itself gives, and each class has half a label more, where
a calibrated proxy puts it.
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import AnyArray, FloatArray

_LABELS_A_CLASS = 0.5
"""Labels of either class that a calibrated proxy counts for: one in all, as half a label more of either."""

_STEPS = 4
"""Steps from λ to the mean and back; they shrink by the labels' share of the variance each time."""

_EDGE = 1e-9


def lam_of_classes(
    counts: AnyArray,
    means: FloatArray,
    off: FloatArray,
    cross: FloatArray,
    *,
    proxy_mean: float,
    proxy_variance: float,
) -> FloatArray:
    """Return λ (…,) between −1 and 1 of outcome and proxy on the 0–1 scale.

    Parameters
    ----------
    counts : (…,)
        n.
    means : float (…,)
        Mean outcome of the labels; graded outcomes count as so much of a positive.
    off : float (…,)
        Mean proxy of the labelled units less that of all units.
    cross : float (…,)
        Covariance of outcome and proxy among the labels, divisor n − 1.
    proxy_mean, proxy_variance : float
        Over all units.

    Notes
    -----
    A calibrated proxy of mean m and variance V has mean m + V/m among positives and m − V/(1 − m) among the
    others.

    Examples
    --------
    >>> told = {"proxy_mean": 0.1, "proxy_variance": 0.03}
    >>> two_of_forty = {"counts": np.array(40.0), "means": np.array(0.05), "off": np.array(-0.02)}
    >>> round(float(lam_of_classes(**two_of_forty, cross=np.array(0.025), **told)), 2)
    1.0
    >>> round(float(lam_of_classes(**two_of_forty, cross=np.array(0.0), **told)), 2)
    0.11
    """
    if proxy_variance <= 0:
        return np.zeros(np.shape(means))
    m = min(max(proxy_mean, _EDGE), 1.0 - _EDGE)
    positives, more = counts * means, _LABELS_A_CLASS
    among = (counts - 1.0) * cross + positives * off
    above = (among + more * proxy_variance / m) / (positives + more)
    below = (counts * off - among - more * proxy_variance / (1.0 - m)) / (counts - positives + more)
    least = 0.5 / (counts + 1.0)
    theta = (positives + 0.5) / (counts + 1.0)
    lam = np.zeros(np.shape(means))
    for _ in range(_STEPS):
        lam = np.clip(theta * (1.0 - theta) * (above - below) / proxy_variance, -1.0, 1.0)
        theta = np.clip(means - lam * off, least, 1.0 - least)
    return np.asarray(lam)
