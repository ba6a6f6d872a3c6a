"""The estimator of a mean that `auto` uses, which a plan determines before there are labels."""

from __future__ import annotations

from stratal.designs.sample import Design

# Estimators of a mean that require a proxy. The last two fit λ.
ESTIMATORS_WITH_PROXY = ("difference", "ppi++", "stratppi")

# Designs that are simple random samples if there is one stratum.
RANDOM_WITHIN_STRATA = ("simple-random", "stratified")

# Minimum number of labels per proxy for which `auto` fits λ. With fewer, the error of λ is too large.
MINIMUM_FOR_FITTING = 50
# Minimum number of labels per proxy, for several proxies and strata of the first one. λ is shrunk
# more if fewer labels differ within strata (docs/methods/means.md), so that it has little effect then.
_LABELS_PER_PROXY = 15
# Minimum number of labels per stratum. In 50 strata, the coverage with a fitted λ is 0.931 for 2 labels each,
# and at least 0.941 for 3 (2,000 draws).
_LABELS_PER_STRATUM = 3


def default_estimator(
    design: str, n: int, n_strata: int, k: int, *, scaled: bool, proxy_strata: bool = True
) -> str:
    """Return the estimator of `auto`, which depends on the design and sizes, and never on results.

    Parameters
    ----------
    design : str
    n : int
        Number of labels, or of clusters if clusters were drawn. For unequal weights, the effective number of
        labels (Kish).
    n_strata : int
        H.
    k : int
        Number of proxies.
    scaled : bool
        Whether the proxy is on the scale of the outcome.
    proxy_strata : bool
        Whether the strata may have been built from the proxy, which then varies little within them.
    """
    min_labels = labels_for_proxies(design, n_strata, k, proxy_strata=proxy_strata)
    if k > 0 and scaled and min_labels is not None and n >= min_labels:
        return "ppi++"
    # Not `difference` (λ = 1): with an inverted score, it would increase the variance.
    if _min_labels_with_weights(design) > 0:
        return "hajek"
    return "horvitz-thompson"


def labels_for_proxies(design: str, n_strata: int, k: int, *, proxy_strata: bool = True) -> int | None:
    """Return the minimum number of labels for which `auto` uses up to k proxies; None if it never does.

    The parameters are those of `default_estimator`.
    """
    min_labels = _min_labels_with_weights(design)
    if min_labels > 0:
        return min_labels * k
    if design in RANDOM_WITHIN_STRATA and n_strata <= 1:
        # The minimum for one proxy; `estimate` omits the proxies for which there are too few labels.
        return MINIMUM_FOR_FITTING
    # λ is fitted within strata, each of whose means uses one degree of freedom (Fisch et al. 2024).
    if design == "stratified" and not proxy_strata:
        return max(_LABELS_PER_STRATUM * n_strata, MINIMUM_FOR_FITTING * k + n_strata)
    if design == "stratified" and k > 1:
        # Within strata of one proxy, the others still vary. λ is shrunk if there are few labels.
        return max(MINIMUM_FOR_FITTING, _LABELS_PER_PROXY * k)
    return None


def _min_labels_with_weights(design: str) -> int:
    """Return the minimum labels or clusters per proxy for a design with unequal weights; 0 for others."""
    design_type: type[Design] | None = Design.class_of_kind(design)
    if design_type is None:
        return 0
    return design_type.hajek_below
