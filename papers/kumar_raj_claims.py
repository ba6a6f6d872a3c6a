"""The printed claims of Kumar & Raj (2016) on proportional and equal allocation, beside ours."""

from __future__ import annotations

import numpy as np

from papers import formulas
from papers.claims import Number, Pair, at_least, at_most, joint, less, near, within
from papers.kumar_raj_runs import METHODS, NUMBERS, Run, ratio, saving
from papers.page import Page
from stratal.simulation import SimulationTable

TEXT = 5.0
"""Points that a percentage of the text may be off. Figures 2c and 4c are one design, since equal allocation
to strata of equal size is proportional; they print −12.5 % and −16 %: the print's own accuracy."""


def add_claims(page: Page, runs: dict[str, Run], accuracy: dict[str, SimulationTable]) -> None:
    """Add every claim on designs that do not look at labels, and Figure 9.

    Parameters
    ----------
    page : Page
    runs : dict of set's name to Run
    accuracy : dict of accuracy's name to SimulationTable
        Figure 9.
    """
    _labels(page, runs)
    _proportional(page, runs)
    _equal(page, runs)
    _number_of_strata(page, runs)
    _ordering(page, runs)
    _small_strata(page)
    _accuracy(page, accuracy, next(iter(runs.values())).simulated)
    _abstract(page, runs)


def _labels(page: Page, runs: dict[str, Run]) -> None:
    """Labels for 1 % mean absolute error."""
    for where, name, design, words, printed in (
        ("Fig. 2a", "rcv1", "equal-width:10:proportional", "284 → 218 labels, −23 %", -23.2),
        ("Fig. 2c", "epsilon", "equal-size:10:proportional", "−12.5 % labels", -12.5),
        ("Fig. 2e", "news20", "k-means:10:proportional", "−16 % labels", -16.0),
        ("Fig. 4a", "rcv1", "k-means:10:equal", "284 → 118 labels, −58.5 %", -58.5),
        ("Fig. 4c", "epsilon", "equal-size:10:equal", "−16 % labels", -16.0),
        ("Fig. 4e", "news20", "cum-sqrt-f:10:equal", "−22 % labels", -22.0),
    ):
        run = runs[name]
        random, stratified = run.labels("simple-random"), run.labels(design)
        number = saving(random, stratified, printed, TEXT)
        method = METHODS[design.split(":")[0]]
        found = f"{random[0]:.0f} → {stratified[0]:.0f} labels, {number.value:+.1f} %"
        if where == "Fig. 2a":
            found += (
                "; labels are in proportion to variance, so −23 % and Fig. 2b's −40 to −45 % cannot both be"
            )
        page.claim(
            where=where,
            says=f"{method}: 1 % error with {words}",
            data=run.data,
            found=found,
            numbers=[number],
        )


def named(found: dict[str, Pair]) -> str:
    """Return values in words, the smallest first."""
    return ", ".join(f"{name} {v:.2f}" for name, (v, _) in sorted(found.items(), key=lambda item: item[1][0]))


def ratios(run: Run, ending: str, column: str = "mvr", budget: int = 300) -> dict[str, Pair]:
    """Return a ratio and its error for every method, by the paper's name of it."""
    return {short: run.ratio(f"{m}:{ending}", column, budget) for m, short in METHODS.items()}


def _below(found: dict[str, Pair], one: str, other: str) -> Number:
    """Return the number that says that one method lies below the other."""
    return at_least(less(found[other], found[one]), 0.0, 0.01)


def _proportional(page: Page, runs: dict[str, Run]) -> None:
    found = ratios(runs["rcv1"], "10:proportional")
    page.claim(
        where="Fig. 2b",
        data=runs["rcv1"].data,
        says="EQWD the best, 40–45 % less variance",
        found=named(found),
        numbers=[
            within(found["EQWD"], 0.55, 0.60, 0.02),
            *(_below(found, "EQWD", other) for other in found if other != "EQWD"),
        ],
    )
    page.claim(
        where="Fig. 2b",
        data=runs["rcv1"].data,
        says="WTMN the worst, about 10 % less variance",
        found=f"WTMN {found['WTMN'][0]:.2f} ± {found['WTMN'][1]:.2f}",
        numbers=[
            near(found["WTMN"], 0.9, 0.05),
            *(_below(found, other, "WTMN") for other in found if other != "WTMN"),
        ],
    )
    found = ratios(runs["epsilon"], "10:proportional")
    page.claim(
        where="Fig. 2d",
        data=runs["epsilon"].data,
        says="less than 20 % off the variance; EQSZ marginally better than SQRT and CBRT",
        found=named(found),
        numbers=[
            at_least((min(v for v, _ in found.values()), max(e for _, e in found.values())), 0.8, 0.02),
            _below(found, "EQSZ", "SQRT"),
            _below(found, "EQSZ", "CBRT"),
        ],
    )
    found = ratios(runs["news20"], "10:proportional")
    page.claim(
        where="Fig. 2f",
        data=runs["news20"].data,
        says="KM slightly better on average, SQRT and CBRT almost as good",
        found=named(found),
        numbers=[within(less(found[m], found["KM"]), 0.0, 0.03, 0.02) for m in ("SQRT", "CBRT")],
    )
    _never_worse(page, runs)


def _never_worse(page: Page, runs: dict[str, Run]) -> None:
    for run in runs.values():
        true = ratios(run, "10:proportional", "true")
        method, (value, error) = max(true.items(), key=lambda entry: entry[1][0])
        page.claim(
            where="§3.4",
            data=run.data,
            says="proportional allocation is never worse than simple random sampling",
            found=f"largest ratio of true errors {value:.2f} ± {error:.2f} ({method})",
            numbers=[at_most((value, error), 1.0)],
        )


def _equal(page: Page, runs: dict[str, Run]) -> None:
    found = ratios(runs["rcv1"], "10:equal")
    most = [m for m in found if m not in ("EQSZ", "WTMN")]
    page.claim(
        where="Fig. 4b",
        data=runs["rcv1"].data,
        says="55–60 % less variance for all but EQSZ and WTMN",
        found=named(found),
        numbers=[
            *(within(found[m], 0.40, 0.45, 0.05) for m in most),
            *(at_least(found[m], 0.45) for m in ("EQSZ", "WTMN")),
        ],
    )
    found = ratios(runs["epsilon"], "10:equal")
    page.claim(
        where="Fig. 4d",
        data=runs["epsilon"].data,
        says="equal allocation raises the variance for all but EQSZ",
        found=named(found),
        numbers=[(at_most if m == "EQSZ" else at_least)(pair, 1.0) for m, pair in found.items()],
    )
    found = ratios(runs["news20"], "10:equal")
    noise = max(error for _, error in found.values())
    page.claim(
        where="Fig. 4f",
        data=runs["news20"].data,
        says="18–23 % less variance in most cases",
        found=named(found),
        numbers=[within((sorted(v for v, _ in found.values())[3], noise), 0.77, 0.82, 0.02)],
    )


def _number_of_strata(page: Page, runs: dict[str, Run]) -> None:
    for where, rule, methods in (
        ("Fig. 3", "proportional", {"rcv1": "equal-width", "news20": "k-means"}),
        ("Fig. 5", "equal", {"rcv1": "k-means", "news20": "cum-sqrt-f"}),
    ):
        for name, method in methods.items():
            run = runs[name]
            series = {
                k: run.ratio(f"{method}:{k}:{rule}")
                for k in NUMBERS
                if len(run.table.where(design=f"{method}:{k}:{rule}", budget=300))
            }
            late = [series[k] for k in series if k >= 7] or list(series.values())
            spread = max(v for v, _ in late) - min(v for v, _ in late)
            first = next(iter(series.values()))
            page.claim(
                where=where,
                data=run.data,
                says=f"{METHODS[method]}: once K is large enough MVR changes little more",
                found=f"MVR {first[0]:.2f} at K = {min(series)}; from K = 7 on it varies by {spread:.3f}",
                numbers=[Number(value=spread, error=joint(late[0][1], late[-1][1]), high=0.05)],
            )


def _ordering(page: Page, runs: dict[str, Run]) -> None:
    for name, method in (("rcv1", "k-means"), ("epsilon", "equal-size"), ("news20", "cum-sqrt-f")):
        run = runs[name]
        even, best = (run.ratio(f"{method}:6:{rule}", "true") for rule in ("proportional", "oracle"))
        page.claim(
            where="§3.4, eq. 11–13",
            data=run.data,
            says="V(random) ≥ V(proportional) ≥ V(optimal), S_k known",
            found=f"1 ≥ {even[0]:.2f} ≥ {best[0]:.2f}",
            numbers=[at_most(even, 1.0), at_least(less(even, best), 0.0)],
        )


def _small_strata(page: Page) -> None:
    """Eq. 14: strata of 5 units with one accuracy."""
    sizes, n, rate = np.full(20, 5), 20, 0.6
    spread = formulas.binary_variance(np.full(20, rate), sizes)
    even = formulas.proportional(sizes, spread, n, correction=False)
    random = formulas.simple_random(float(formulas.binary_variance(rate, sizes.sum())), n, np.inf)
    page.claim(
        where="eq. 14",
        says="where 1/N_k is not negligible and all accuracies are equal, proportional allocation is "
        "worse than random",
        data="closed form",
        found=f"20 strata of 5 units: V(proportional) is {even / random:.3f} of V(random)",
        numbers=[Number(value=even / random, low=1.0)],
    )


def _accuracy(page: Page, tables: dict[str, SimulationTable], simulated: bool) -> None:
    found = {name: ratio(table, "equal-size:6:opt-a2:5:10") for name, table in tables.items()}
    known = {name: ratio(table, "equal-size:6:oracle", "true") for name, table in tables.items()}
    for words, pairs in (("MVR of OPT-A2 to the letter", found), ("true error with S_k known", known)):
        page.claim(
            where="Fig. 9",
            data="epsilon, simulated",
            says="the more accurate the classifier (88 %, 77 %, 67 %), the larger the gain",
            found=f"{words}: " + ", ".join(f"{name} {v:.2f}" for name, (v, _) in pairs.items()),
            numbers=[at_least(less(pairs[b], pairs[a]), 0.0) for a, b in (("H", "M"), ("M", "L"))],
        )


def _abstract(page: Page, runs: dict[str, Run]) -> None:
    """The largest gains of all designs, by the estimated variance as printed and by the true error."""
    words = {"mvr": "estimated variance", "true": "true error"}
    for column, name in words.items():
        gains = [
            (1 - value, error, f"{run.found.name}, {design}")
            for run in runs.values()
            for design in dict.fromkeys(row["design"] for row in run.table.where(budget=300).rows())
            for value, error in [run.ratio(design, column)]
        ]
        best, error, where = max(gains)
        page.claim(
            where="abstract",
            says="over 65 % less variance in several cases",
            found=f"{name}, n = 300: by more than 65 % with {sum(g > 0.65 for g, _, _ in gains)} of "
            f"{len(gains)} designs; at most {100 * best:.0f} % ({where})",
            numbers=[at_least((100 * best, 100 * error), 65.0, TEXT, " points")],
        )
    labels = [
        (after[0] / before[0] - 1, joint(after[1], before[1] * after[0] / before[0]) / before[0], run, design)
        for run in runs.values()
        for before in [run.labels("simple-random")]
        for design in dict.fromkeys(run.table["design"].tolist())
        for after in [run.labels(design)]
        if np.isfinite(after[0])
    ]
    saved, error, run, design = min(labels, key=lambda entry: entry[0])
    page.claim(
        where="abstract",
        data=run.data,
        says="up to 60 % fewer labels for an error of 1 %",
        found=f"{100 * saved:.0f} % ({design})",
        numbers=[near((100 * saved, 100 * error), -60.0, TEXT, " points")],
    )
