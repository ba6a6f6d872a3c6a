"""The printed claims of Fogliato et al. (2024) beside what comes out here."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from papers.claims import Number, Pair, at_least, at_most, joint, less, near, within
from papers.domains import SETS, WHERE
from papers.page import Page
from papers.printed import COLUMNS, Column, Rows
from papers.roles import EVALUATED
from papers.sources import EVEN, Measured
from stratal.arrays import FloatArray

NEYMAN = "SSRS Neyman HT"

Sets = dict[str, Measured]

_NEVER_WORSE = 0.05
"""What the paper's own Table 1 has above 1 where its text says never worse: 1.05 and 1.06 on SmallNorb."""


def add_claims(
    page: Page, measured: Sets, families: dict[str, Sets], other: dict[str, Sets], shifted: Sets
) -> None:
    """Add every claim that can be checked."""
    everything = [*measured.values()]
    for group in (*families.values(), *other.values()):
        everything += group.values()
    _closed_forms(page, everything)
    _never_worse(page, everything)
    _neyman(page, measured)
    _sources(page, measured)
    _same(page, measured)
    _accuracy(page, measured)
    _uncalibrated(page, measured)
    _other(page, other)
    _trained(page, families)
    _families(page, families)
    _shifted(page, shifted)
    _table_1(page, measured)


def mean_ratio(found: Iterable[Measured], arm: str, source: str) -> Pair:
    """Return the mean ratio of an arm over sets, and its Monte Carlo error."""
    pairs = np.array([m.pair(arm, source) for m in found])
    return float(pairs[:, 0].mean()), joint(*pairs[:, 1]) / len(pairs)


def difference(found: Iterable[Measured], one: Column, other: Column) -> Pair:
    """Return the mean difference of two ratios over the sets that have both, and its Monte Carlo error."""
    gaps, noise = _gaps(found, one, other)
    return float(np.mean(gaps)), joint(*noise) / len(gaps)


def _gaps(found: Iterable[Measured], one: Column, other: Column) -> tuple[FloatArray, FloatArray]:
    both = [m for m in found if one in m.ratios and other in m.ratios]
    gaps = np.array([m.ratios[one] - m.ratios[other] for m in both])
    return gaps, np.array([joint(m.errors[one], m.errors[other]) for m in both])


def _closed_forms(page: Page, found: list[Measured]) -> None:
    deviations = np.array([d for m in found for d in m.deviations if np.isfinite(d)])
    spread = float(np.sqrt(np.mean(deviations**2)))
    share = sum(m.ordered for m in found) / len(found)
    page.claim(
        where="Prop. 1",
        says="MSE(Neyman) ≤ MSE(proportional) ≤ MSE(SRS), S_h known",
        found=f"in closed form on {sum(m.ordered for m in found)} of {len(found)} populations",
        numbers=[Number(value=share, low=1.0, high=1.0)],
    )
    page.claim(
        where="eq. 3–5, 8",
        says="closed forms of the MSE",
        found=f"simulated and closed form differ by {spread:.2f} Monte Carlo errors (root mean square of "
        f"{len(deviations)} cells)",
        numbers=[near((spread, 1 / np.sqrt(2 * len(deviations))), 1.0, 0.1)],
    )


def _never_worse(page: Page, found: list[Measured]) -> None:
    for says, arm, sources, printed in (
        ("proportional is never worse than SRS, whatever the source", EVEN, ("emb", "f", "f*", "f*c"), 1.05),
        ("DF with a calibrated proxy is never worse than HT", "SRS DF", ("f*c",), 1.06),
        ("Neyman's rule with f*c consistently matches or exceeds SRS", NEYMAN, ("f*c",), 1.11),
    ):
        keys = [(m, source) for m in found for source in sources if (arm, source) in m.ratios]
        closed, name = max((m.closed[arm, source], f"{m.name}, {source}") for m, source in keys)
        m, source = max(keys, key=lambda key: key[0].ratios[arm, key[1]])
        shown = (
            f"largest of {len(keys)} ratios by closed form {closed:.3f} ({name}); the largest simulated "
            f"one {m.ratios[arm, source]:.2f} ± {m.errors[arm, source]:.2f}"
        )
        if arm == EVEN:
            smooth = max(m.unrounded[source] for m, source in keys)
            shown += f"; n_h not rounded, no label forced on a small stratum: {smooth:.3f}"
        page.claim(
            where="§4.2",
            says=f"{says}; its Table 1 has up to {printed} (SmallNorb, azimuth)",
            found=shown,
            numbers=[Number(value=closed, high=1.0, tolerance=_NEVER_WORSE)],
            sets=len(found),
        )


def _neyman(page: Page, measured: Sets) -> None:
    worse, largest = [], (0.0, 0.0)
    for name, m in measured.items():
        for source in ("f", "f*"):
            if (NEYMAN, source) in m.ratios:
                plug_in, even = m.ratios[NEYMAN, source], m.ratios[EVEN, source]
                largest = max(largest, (plug_in - even, m.errors[NEYMAN, source]))
                if plug_in > even + 3 * m.errors[NEYMAN, source]:
                    worse.append(f"{name} ({source}) {plug_in:.2f} against {even:.2f}")
    page.claim(
        where="§4.2",
        says="with an overconfident proxy Neyman's plug-in rule can be worse than proportional",
        found="; ".join(worse) or "on none",
        numbers=[at_least(largest, 0.0)],
    )
    if any((EVEN, "f*") in m.ratios for m in measured.values()):
        moved = difference(measured.values(), (EVEN, "f*"), (EVEN, "f*c"))
        helped = difference(measured.values(), (NEYMAN, "f*"), (NEYMAN, "f*c"))
        page.claim(
            where="§4.2",
            says="calibration does not affect proportional allocation, and helps Neyman's",
            found=f"on average proportional moves by {moved[0]:+.3f} ± {moved[1]:.3f}, Neyman's improves by "
            f"{helped[0]:.2f} ± {helped[1]:.2f}",
            numbers=[near(moved, 0.0, 0.03), at_least(helped, 0.0)],
        )


def _sources(page: Page, measured: Sets) -> None:
    both = [m for m in measured.values() if (EVEN, "emb") in m.ratios]
    if both:
        gaps, _ = _gaps(both, (EVEN, "emb"), (EVEN, "f"))
        mean, error = difference(both, (EVEN, "emb"), (EVEN, "f"))
        page.claim(
            where="§4.2, Fig. 2",
            says="strata from the model's confidence generally beat strata from embeddings",
            found=f"on {np.sum(gaps > 0)} of {len(both)} tasks; the mean ratio is lower by {mean:.3f}",
            numbers=[at_least((mean, error), 0.0)],
            sets=len(both),
        )
    mean, error = difference(measured.values(), (EVEN, "f"), (EVEN, "f*"))
    gaps, noise = _gaps(measured.values(), (EVEN, "f"), (EVEN, "f*"))
    least = int(np.argmin(gaps))
    page.claim(
        where="§4.2, Fig. 2",
        says="a better surrogate makes better strata, on every task",
        found=f"mean ratio lower by {mean:.2f}; least gain on a task {gaps[least]:+.2f} ± {noise[least]:.2f}",
        numbers=[at_least((mean, error), 0.0), at_least((float(gaps[least]), float(noise[least])), 0.0)],
        sets=len(gaps),
    )


def _same(page: Page, measured: Sets) -> None:
    for where, says, arm, tolerance in (
        ("§4.2", "DF under SRS with a calibrated proxy ≈ HT under proportional allocation", "SRS DF", 0.06),
        ("§3.3", "under SSRS, HT and DF are virtually the same", "SSRS proportional DF", 0.02),
    ):
        mean, error = difference(measured.values(), (arm, "f*c"), (EVEN, "f*c"))
        gaps, noise = _gaps(measured.values(), (arm, "f*c"), (EVEN, "f*c"))
        page.claim(
            where=where,
            says=says,
            found=f"ratios differ by {mean:+.3f} on average, by {max(gaps, key=abs):+.2f} at most "
            f"(noise of one pair {np.mean(noise):.2f})",
            numbers=[near((mean, error), 0.0, tolerance)],
            sets=len(gaps),
        )


def _accuracy(page: Page, measured: Sets) -> None:
    accuracy = np.array([m.accuracy for m in measured.values()])
    ratio = np.array([m.ratios["SRS DF", "f"] for m in measured.values()])
    correlation = float(np.corrcoef(accuracy, ratio)[0, 1])
    page.claim(
        where="Fig. 3, left",
        says="more accurate models tend to gain more from DF with f",
        found=f"correlation of accuracy and ratio {correlation:+.2f} over {len(ratio)} sets of various kinds "
        "(± is that of a correlation of so many)",
        numbers=[Number(value=correlation, error=1 / np.sqrt(max(len(ratio) - 3, 1)), high=0.0)],
        sets=len(ratio),
    )


def _uncalibrated(page: Page, measured: Sets) -> None:
    values = [
        (*m.pair("SRS DF", s), f"{name}, {s}")
        for name, m in measured.items()
        for s in ("f", "f*")
        if ("SRS DF", s) in m.ratios
    ]
    (value, error, worst), better = max(values), sum(v < 1 for v, _, _ in values)
    page.claim(
        where="§4.2",
        says="DF with a proxy that is not calibrated is better than HT on many tasks (24 of 34 rows with f, "
        "23 with f*), and substantially worse on some (up to 1.82)",
        found=f"better with {better} of {len(values)} proxies; at worst {value:.2f} ± {error:.2f} ({worst})",
        numbers=[Number(value=better / len(values), low=0.5), at_least((value, error), 1.0)],
        sets=len(measured),
    )


def row_by_row(page: Page, measured: Sets, printed: Rows) -> None:
    """Add a row for each task that is named as a row of the printed Table 1, all its columns together."""
    names = {_plain(name): name for name in printed}
    for task, m in measured.items():
        row = printed.get(names.get(_plain(task), ""), {})
        columns = [column for column in row if column in m.ratios]
        if columns:
            page.claim(
                where=f"Table 1, {names[_plain(task)]}",
                says=", ".join(f"{row[c]:.2f}" for c in columns),
                data=task,
                found=", ".join(f"{m.ratios[c]:.2f} ({c[0]} {c[1]})" for c in columns),
                numbers=[near(m.pair(*c), row[c], 0.05) for c in columns],
            )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def the_print_itself(page: Page, rows: Rows) -> None:
    """Add what the text says of the experiments beside what its own Table 1 prints.

    Parameters
    ----------
    page : Page
    rows : dict of data set to dict of column to ratio
        The printed rows; none, and nothing is added.
    """
    if not rows:
        return
    best = 1 / min(rows["CIFAR-10"].values())
    above = [name for name, row in rows.items() if row[NEYMAN, "f*c"] > 1]
    worse = [name for name, row in rows.items() if row[EVEN, "f*"] > row[EVEN, "f"]]
    most = 1 / min(value for row in rows.values() for value in row.values())
    for where, says, found, number in (
        (
            "Fig. 1, abstract",
            "10× on CIFAR-10",
            f"the best cell of its row is {1 / best:.2f}, {best:.1f}×",
            Number(value=best, low=10.0, tolerance=1.0),
        ),
        (
            "§4.2",
            "on certain tasks more than 10× lower",
            f"the least cell is {1 / most:.2f}, {most:.1f}×",
            Number(value=most, low=10.0, tolerance=0.5),
        ),
        (
            "§4.2",
            "Neyman's rule with f*c consistently matches or exceeds SRS",
            f"above 1 on {len(above)} of {len(rows)} rows: {', '.join(above)}",
            Number(value=max(rows[name][NEYMAN, "f*c"] for name in above), high=1.0, tolerance=_NEVER_WORSE),
        ),
        (
            "§4.2",
            "under proportional allocation f* improves on f across all tasks",
            f"not on {len(worse)} of {len(rows)} rows: {', '.join(worse)}",
            Number(
                value=-max(rows[n][EVEN, "f*"] - rows[n][EVEN, "f"] for n in worse), low=0.0, tolerance=0.01
            ),
        ),
    ):
        page.claim(where=where, says=says, data="its own Table 1", found=found, numbers=[number])


_ALWAYS = (
    "; our proxies are trained on data like the population, and then the paper too finds that they always "
    "improve"
)


def _other(page: Page, other: dict[str, Sets]) -> None:
    for outcome, sets in other.items():
        found = list(sets.values())
        sources = [s for s in ("emb", "f", "f*") if all((EVEN, s) in m.ratios for m in found)]
        means = {source: mean_ratio(found, EVEN, source) for source in sources}
        page.claim(
            where="Fig. 4",
            says=f"{outcome}: under proportional allocation f* generally beats f, and f beats embeddings",
            found=", ".join(f"{source} {v:.2f} ± {e:.2f}" for source, (v, e) in means.items()),
            numbers=[
                at_least(difference(found, (EVEN, worse), (EVEN, better)), 0.0)
                for worse, better in pairwise(sources)
            ],
            sets=len(found),
        )
        for arm, name in (("SRS DF", "DF"), (NEYMAN, "Neyman's allocation")):
            values = [m.pair(arm, s) for m in found for s in ("f", "f*")]
            high, low = max(values), min(values)
            page.claim(
                where="Fig. 4",
                says=f"{outcome}: {name} is better than SRS on some tasks, worse on others",
                found=f"ratios from {low[0]:.2f} to {high[0]:.2f}{'' if high[0] > 1 else _ALWAYS}",
                numbers=[at_most(low, 1.0), at_least(high, 1.0)],
                sets=len(found),
            )


def _trained(page: Page, families: dict[str, Sets]) -> None:
    weak, strong = (
        next((found for name, found in families.items() if any(w in name for w in words)), {})
        for words in (("naive", EVALUATED), ("logistic", "prob"))
    )
    if not weak or not strong:
        return
    for arm in ("SRS DF", NEYMAN):
        a, b = (mean_ratio(sets.values(), arm, "f") for sets in (weak, strong))
        page.claim(
            where="Fig. 5",
            says=f"{arm} with f: a model fitted to the task (linear probing) gains where one that is not "
            "(zero-shot) does not",
            found=f"mean ratio {b[0]:.2f} ± {b[1]:.2f} with a fitted model, {a[0]:.2f} ± "
            f"{a[1]:.2f} with a model that is not",
            numbers=[at_most(b, 1.0), at_least(less(a, b), 0.0)],
        )


def _families(page: Page, families: dict[str, Sets]) -> None:
    found = [m for sets in families.values() for m in sets.values()]
    keys = [
        (m.closed[EVEN, s], m.name) for m in found for s in ("emb", "f", "f*", "f*c") if (EVEN, s) in m.closed
    ]
    worst, name = max(keys)
    page.claim(
        where="Fig. 6",
        says="proportional allocation lowers the variance for every family of models",
        found=f"largest ratio of {len(keys)} by closed form {worst:.3f} ({name})",
        numbers=[Number(value=worst, high=1.0, tolerance=_NEVER_WORSE)],
    )
    for says, one, other in (
        ("strata from predictions beat strata from embeddings", (EVEN, "emb"), (EVEN, "f")),
        ("calibration helps Neyman's allocation", (NEYMAN, "f*"), (NEYMAN, "f*c")),
        ("a more accurate surrogate helps", (EVEN, "f"), (EVEN, "f*")),
    ):
        parts = {
            name: difference(sets.values(), one, other)
            for name, sets in families.items()
            if any(one in m.ratios for m in sets.values())
        }
        if not parts:
            continue
        page.claim(
            where="Fig. 6",
            says=f"{says}, in every family",
            found="mean ratio lower by " + ", ".join(f"{v:.2f} ({name})" for name, (v, _) in parts.items()),
            numbers=[at_least(pair, 0.0) for pair in parts.values()],
        )
    if len(families) == 1:
        return
    rank = {
        name: (float(np.mean([m.accuracy for m in sets.values()])), *mean_ratio(sets.values(), EVEN, "f"))
        for name, sets in families.items()
    }
    best, least = max(rank.values()), min(rank.values())
    page.claim(
        where="Fig. 6",
        says="the family that performs far better (ConvNeXT against ResNet) gains more",
        found="accuracy and mean ratio: "
        + ", ".join(f"{name} {a:.2f} and {v:.2f}" for name, (a, v, _) in rank.items()),
        numbers=[at_least(less(least[1:], best[1:]), 0.0)],
    )


def _shifted(page: Page, shifted: Sets) -> None:
    for chosen in SETS:
        groups = [[m for n, m in shifted.items() if n.startswith(f"{chosen}, {where}")] for where in WHERE]
        if not all(groups):
            continue
        inside, outside = ({arm: mean_ratio(g, arm, "f*c") for arm in (EVEN, NEYMAN)} for g in groups)
        lost = difference(groups[1], (NEYMAN, "f*c"), (EVEN, "f*c"))
        shown = (
            f"mean ratio in distribution: proportional {inside[EVEN][0]:.2f}, Neyman "
            f"{inside[NEYMAN][0]:.2f}; out: {outside[EVEN][0]:.2f} and {outside[NEYMAN][0]:.2f}"
        )
        page.claim(
            where="Fig. 7",
            data=chosen,
            says="gains of proportional allocation are larger in distribution",
            found=shown,
            numbers=[at_least(less(outside[EVEN], inside[EVEN]), 0.0)],
        )
        page.claim(
            where="Fig. 7",
            data=chosen,
            says="out of distribution Neyman's allocation is generally worse than proportional (iWildCam)",
            found=f"ratio higher by {lost[0]:+.2f} on average",
            numbers=[at_least(lost, 0.0)],
        )


def _table_1(page: Page, measured: Sets) -> None:
    for (arm, source), (low, high) in COLUMNS.items():
        found = [m for m in measured.values() if (arm, source) in m.ratios]
        if not found:
            continue
        numbers = [within(m.pair(arm, source), low, high, 0.05) for m in found]
        values = [number.value for number in numbers]
        outside = sum(number.holds is False for number in numbers)
        page.claim(
            where="Table 1",
            says=f"{arm}, {source}: ratios from {low:.2f} to {high:.2f} on 34 tasks",
            found=f"from {min(values):.2f} to {max(values):.2f} on {len(values)} sets; "
            f"{outside} outside what is printed",
            numbers=numbers,
            sets=len(found),
        )
