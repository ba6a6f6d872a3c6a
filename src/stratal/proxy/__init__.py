"""Proxies: predictions of the outcome for every unit, from probabilities, variances, scores or judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratal.names import import_on_use

if TYPE_CHECKING:
    from stratal.proxy.agreement import peer_agreement as peer_agreement
    from stratal.proxy.calibration import FittedCurve as FittedCurve
    from stratal.proxy.calibration import calibrate as calibrate
    from stratal.proxy.calibration import combine as combine
    from stratal.proxy.calibration import cross_fit as cross_fit
    from stratal.proxy.calibration import learn as learn
    from stratal.proxy.history import fit_history as fit_history
    from stratal.proxy.proxy import Proxy as Proxy
    from stratal.proxy.proxy import absolute_regression_error as absolute_regression_error
    from stratal.proxy.proxy import accuracy as accuracy
    from stratal.proxy.proxy import cross_entropy as cross_entropy
    from stratal.proxy.proxy import margin as margin
    from stratal.proxy.proxy import squared_error as squared_error
    from stratal.proxy.proxy import squared_regression_error as squared_regression_error

_NAMES = {
    "stratal.proxy.agreement": "peer_agreement",
    "stratal.proxy.calibration": "FittedCurve calibrate combine cross_fit learn",
    "stratal.proxy.history": "fit_history",
    "stratal.proxy.proxy": "Proxy absolute_regression_error accuracy "
    "cross_entropy margin squared_error squared_regression_error",
}
__all__ = sorted(" ".join(_NAMES.values()).split())
__getattr__, __dir__ = import_on_use(__name__, _NAMES)
