"""The method of an estimate in words that can be cited: what was done, what it rests on, where it is from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SOURCES = {
    "clopper": "Clopper & Pearson (1934), The use of confidence or fiducial limits illustrated in the case "
    "of "
    "the binomial. Biometrika 26, 404–413.",
    "cochran": "Cochran (1977), Sampling techniques, 3rd ed. Wiley.",
    "blaker": "Blaker (2000), Confidence curves and improved exact confidence intervals for discrete "
    "distributions. Canadian Journal of Statistics 28, 783–798.",
    "deville": "Deville & Särndal (1992), Calibration estimators in survey sampling. Journal of the American "
    "Statistical Association 87, 376–382.",
    "fisch": "Fisch, Maynez, Hofer, Dhingra, Globerson & Cohen (2024), Stratified prediction-powered "
    "inference "
    "for hybrid language model evaluation. NeurIPS. arXiv:2406.04291.",
    "fogliato": "Fogliato, Patil, Monfort & Perona (2024), A framework for efficient model evaluation "
    "through "
    "stratification, sampling, and estimation. ECCV. arXiv:2406.07320.",
    "hajek": "Hájek (1971), Comment on a paper by D. Basu. In: Foundations of statistical inference.",
    "horvitz": "Horvitz & Thompson (1952), A generalization of sampling without replacement from a finite "
    "universe. Journal of the American Statistical Association 47, 663–685.",
    "korn": "Korn & Graubard (1998), Confidence intervals for proportions with small expected number of "
    "positive counts estimated from survey data. Survey Methodology 24, 193–201.",
    "lohr": "Lohr (2021), Sampling: design and analysis, 3rd ed. CRC Press.",
    "neyman": "Neyman (1934), On the two different aspects of the representative method. Journal of the "
    "Royal "
    "Statistical Society 97, 558–625.",
    "fieller": "Fieller (1954), Some problems in interval estimation. Journal of the Royal Statistical "
    "Society B 16, 175–185.",
    "hall": "Hall (1992), On the removal of skewness by transformation. Journal of the Royal Statistical "
    "Society B 54, 221–228.",
    "ohlsson": "Ohlsson (1998), Sequential Poisson sampling. Journal of Official Statistics 14, 149–162.",
    "ppi": "Angelopoulos, Duchi & Zrnic (2023), PPI++: efficient prediction-powered inference. "
    "arXiv:2311.01453.",
    "rao": "Rao & Wu (1988), Resampling inference with complex survey data. Journal of the American "
    "Statistical Association 83, 231–241.",
    "satterthwaite": "Satterthwaite (1946), An approximate distribution of estimates of variance components. "
    "Biometrics Bulletin 2, 110–114.",
    "waudby": "Waudby-Smith & Ramdas (2023), Estimating means of bounded random variables by betting. "
    "Journal "
    "of the Royal Statistical Society B 86, 1–27.",
    "woodruff": "Woodruff (1952), Confidence intervals for medians and other position measures. Journal of "
    "the American Statistical Association 47, 635–646.",
    "zou": "Zou & Donner (2008), Construction of confidence intervals about effect measures: a general "
    "approach. Statistics in Medicine 27, 1693–1702.",
    "wilson": "Wilson (1927), Probable inference, the law of succession, and statistical inference. "
    "Journal of "
    "the American Statistical Association 22, 209–212.",
}
"""Where methods come from."""

Words = tuple[str, tuple[str, ...]]

ESTIMATORS: dict[str, Words] = {
    "horvitz-thompson": ("the weighted mean of the labels (Horvitz–Thompson)", ("horvitz",)),
    "difference": (
        "the mean proxy of all units plus the weighted mean difference between labels and proxies (the "
        "difference estimator, or prediction-powered inference with λ = 1)",
        ("cochran", "fogliato"),
    ),
    "difference (given λ)": (
        "the mean proxy of all units times a given λ plus the weighted mean of label minus λ times proxy",
        ("cochran", "ppi"),
    ),
    "ppi++": (
        "the difference estimator with one λ fitted to minimise the design's variance (PPI++, a regression "
        "estimator)",
        ("ppi", "cochran"),
    ),
    "stratppi": (
        "the difference estimator with one λ per stratum, shrunk towards the pooled one (stratified "
        "prediction-powered inference)",
        ("fisch",),
    ),
    "hajek": ("the weighted mean of the labels divided by the sum of the weights (Hájek)", ("hajek",)),
    "post-stratified": ("the post-stratified mean of the labels", ("cochran",)),
    "linearised": (
        "the quantity's formula applied to the weighted shares of the labelled units, its variance by "
        "linearisation",
        ("lohr",),
    ),
}
"""How the mean was estimated, by the estimator's name."""

INTERVALS: dict[str, Words] = {
    "clopper-pearson": (
        "Clopper and Pearson's on the effective number of trials, with the finite population correction",
        ("clopper", "korn"),
    ),
    "stratified-clopper-pearson": (
        "of Clopper and Pearson's kind for several strata, by test inversion at constrained maximum "
        "likelihood",
        ("clopper",),
    ),
    "korn-graubard": ("Korn and Graubard's, on the effective sample size", ("korn",)),
    "blaker": ("Blaker's, on the effective sample size", ("blaker",)),
    "wilson": ("Wilson's, on the effective sample size", ("wilson",)),
    "logit": ("on the logit scale", ("korn",)),
    "t": ("Student's t with Satterthwaite's degrees of freedom", ("satterthwaite",)),
    "skewness-corrected": (
        "Student's t with Satterthwaite's degrees of freedom, each limit moved outwards where Hall's "
        "transformation for skewed outcomes lies farther",
        ("hall", "satterthwaite"),
    ),
    "normal": ("the normal approximation's", ("cochran",)),
    "bootstrap": ("the percentiles of the rescaling bootstrap", ("rao",)),
    "bootstrap-t": ("of the studentised rescaling bootstrap", ("rao",)),
    "mover": ("put together from those of the shares and means that it is made of", ("zou",)),
    "woodruff": ("Woodruff's, from that of the share of outcomes below", ("woodruff",)),
    "fieller": ("Fieller's, with a correction for skewed outcomes", ("fieller",)),
    "log-t": ("Student's t on the logarithmic scale", ("satterthwaite",)),
    "betting": ("by betting without replacement, valid for every sample size", ("waudby",)),
    "betting-anytime": ("by betting, valid however often one looks at it", ("waudby",)),
}
"""What the interval is, by its method's name."""


def described_method(
    estimate: Mapping[str, Any],
    drawn: Sequence[str] = (),
    assumption: str = "",
    allocation: str | None = None,
) -> dict[str, Any]:
    """Return sentences, assumptions and references of an estimate (`Estimate.to_dict`).

    Parameters
    ----------
    estimate : dict
    drawn : sequence of str
        What was drawn, and its sources: keys of `SOURCES`, or as they are cited.
    assumption : str
        What else could fail under this design.
    allocation : str, optional
        How the labels were shared among the strata.

    Examples
    --------
    >>> found = described_method({"design": "simple-random", "estimator": "horvitz-thompson",
    ...     "outcome": "binary", "interval_method": "clopper-pearson", "confidence_level": 0.95, "n": 20,
    ...     "population_size": 100, "target": "population",
    ...     "nonresponse": {"drawn": 20, "labelled": 20, "rate": 0.0}},
    ...     ("a simple random sample without replacement", "cochran"))
    >>> found["sentences"][0]
    '20 of 100 units were labelled, drawn as a simple random sample without replacement.'
    """
    unknown: Words = ("", ())
    design, *sources = drawn or (f"a {estimate['design']} sample",)
    mean, of_mean = ESTIMATORS.get(estimate["estimator"], (estimate["estimator"], ()))
    interval, of_interval = INTERVALS.get(estimate["interval_method"] or "", unknown)
    shared = "" if allocation is None else f", its labels shared among the strata by the rule {allocation!r}"
    labelled = (estimate["nonresponse"] or {"labelled": estimate["n"]})["labelled"]
    entered = "" if estimate["n"] == labelled else f" The estimate rests on {estimate['n']:,} of them."
    sentences = [
        f"{labelled:,} of {estimate['population_size']:,} units were labelled, drawn as "
        f"{design}{shared}.{entered}",
        f"The estimate is {mean}.",
    ]
    if interval:
        sentences.append(f"Its {100 * estimate['confidence_level']:g}% confidence interval is {interval}.")
    cited = (*sources, *(("neyman",) if allocation in ("neyman", "robust") else ()), *of_mean, *of_interval)
    return {
        "sentences": sentences,
        "assumptions": _assumptions(estimate, assumption),
        "references": [SOURCES.get(name, name) for name in dict.fromkeys(cited)],
    }


def _assumptions(estimate: Mapping[str, Any], assumption: str) -> list[str]:
    """Return what could fail."""
    found = [
        "The labels are right: what the annotators get wrong, the estimate takes for the truth.",
        "The units were drawn at random as described, and none was replaced by hand.",
    ]
    counts = estimate["nonresponse"]
    if counts is not None and counts["labelled"] < counts["drawn"]:
        found.append("Units without a label are like the labelled ones of their stratum.")
    if estimate["target"] == "population":
        found.append(
            f"The answer is about these {estimate['population_size']:,} units; for units of another kind "
            f"or time "
            "nothing is claimed."
        )
    else:
        found.append("The units themselves are a random draw from the distribution that is asked about.")
    if estimate["outcome"] == "unbounded":
        found.append(
            "The mean of the labels is nearly normal: no outcome is so rare and large that none was seen."
        )
    if assumption:
        found.append(assumption)
    if estimate["estimator"] in ("ppi++", "stratppi"):
        found.append(
            "λ was fitted on the same labels; the loss of precision is counted, the small bias is not."
        )
    return found
