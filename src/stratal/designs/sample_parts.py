"""What a sample file holds of a sample: columns of its units, a description, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, plain
from stratal.population.digest import PopulationDigest
from stratal.population.summary import ProxyInfo, StratumSummary


def columns_of(sample: Any) -> dict[str, AnyArray]:
    """Return what a sample file holds of each unit: arrays (n,) by the name of their column.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9])
    >>> list(columns_of(stratal.SimpleRandom(budget=2).draw(population, seed=7)))
    ['id', 'stratum', 'inclusion_probability', 'round', 'proxy.proxy']
    """
    fixed = {name: getattr(sample, name) for name in ("stratum", "inclusion_probability", "round")}
    proxies = {f"proxy.{name}": sample.proxies[:, k] for k, name in enumerate(sample.proxy_names)}
    groups = {f"group.{name}": values for name, values in sample.groups.items()}
    shown = {f"show.{name}": values for name, values in sample.shown.items()}
    return {"id": sample.ids} | fixed | proxies | groups | shown


def description_of(sample: Any) -> dict[str, Any]:
    """Return what a sample file holds beside the units, as JSON can write it.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9])
    >>> description_of(stratal.SimpleRandom(budget=2).draw(population, seed=7))["design"]
    {'kind': 'simple-random', 'budget': 2}
    """
    digest = sample.population_digest()
    return {
        "version": sample.version,
        "seed": sample.seed,
        "id_name": sample.id_name,
        "ids": "integer" if sample.ids.dtype.kind in "iu" else "text",
        "predicted": sample.predicted,
        "totals": {name: dict(levels) for name, levels in sample.totals.items()},
        "outcome": sample.outcome,
        "bounds": None if sample.bounds is None else list(sample.bounds),
        **({} if sample.estimand is None else {"estimand": dict(sample.estimand)}),
        **({} if sample.counted is None else {"counted": dict(sample.counted)}),
        **({} if sample.half_width is None else {"half_width": sample.half_width}),
        "proxies": [{name: getattr(info, name) for name in info.__slots__} for info in sample.proxy_info],
        "groups": list(sample.groups),
        "shown": list(sample.shown),
        "summary": {name: plain(getattr(sample.summary, name)) for name in StratumSummary.__slots__},
        "design": sample.design.to_dict(),
        **({} if digest is None else {"population_digest": digest.to_dict()}),
    }


def parts_from(columns: Mapping[str, AnyArray], description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Sample` from what its file holds, the design still a record.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9])
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> parts_from(columns_of(sample), description_of(sample))["proxy_info"] == sample.proxy_info
    True
    """
    proxies = tuple(
        ProxyInfo(**{**entry, "bounds": entry["bounds"] and tuple(entry["bounds"])})
        for entry in description["proxies"]
    )
    summary, digest = description["summary"], description.get("population_digest")
    n_strata, k = len(summary["sizes"]), len(proxies)
    values = [columns[f"proxy.{info.name}"] for info in proxies]
    return {
        "ids": columns["id"],
        "proxies": np.stack(values, axis=1) if values else np.empty((len(columns["id"]), 0)),
        "proxy_info": proxies,
        "summary": StratumSummary(
            sizes=summary["sizes"],
            proxy_means=np.reshape(summary["proxy_means"], (n_strata, k)),
            proxy_covariances=np.reshape(summary["proxy_covariances"], (n_strata, k, k)),
        ),
        "groups": {name: columns[f"group.{name}"] for name in description["groups"]},
        "shown": {name: columns[f"show.{name}"] for name in description["shown"]},
        "totals": description.get("totals", {}),
        "outcome": description.get("outcome"),
        "estimand": description.get("estimand"),
        "counted": description.get("counted"),
        "half_width": description.get("half_width"),
        "digest": None if digest is None else PopulationDigest(**digest),
        "bounds": description.get("bounds") and tuple(description["bounds"]),
        **{name: columns[name] for name in ("stratum", "inclusion_probability", "round")},
        **{name: description[name] for name in ("design", "seed", "predicted", "id_name", "version")},
    }
