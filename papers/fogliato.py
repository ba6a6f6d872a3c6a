"""Fogliato et al. (2024): Table 1 and Figures 1–7, on classifiers trained here and on files."""

from __future__ import annotations

from pathlib import Path

from papers.classifiers import trained_tasks
from papers.domains import shifted_domains
from papers.files import prediction_files
from papers.fogliato_claims import add_claims, row_by_row, the_print_itself
from papers.fogliato_figures import SHOWN, figure_1, figure_3, figure_7, violins
from papers.page import Page
from papers.printed import COLUMNS, Rows, printed_rows
from papers.roles import EVALUATED, role_tasks
from papers.sources import ARMS, Case, Measured, case_of_file, case_of_task, measure


def reproduce_fogliato(
    output: Path,
    *,
    data: Path | None = None,
    predictions: Path | None = None,
    quick: bool = False,
    seed: int = 0,
) -> Page:
    """Reproduce the table and the figures of Fogliato et al.

    Parameters
    ----------
    output : path
    data : path, optional
        Directory of files with columns `z` and `proxy`.
    predictions : path, optional
        Directory of predictions by role, `TASK/evaluated.npz` and `TASK/surrogate.npz`; then nothing else is
        used, and Figure 7, which needs shifted domains, is left out. See `papers.roles`.
    quick : bool
        A task of each kind of data and few replicates, to see that it runs.
    seed : int

    Returns
    -------
    Page
    """
    named = "predictions by role" if predictions else "trained here, and files" if data else "trained here"
    page = Page(
        title="Efficient model evaluation (Fogliato et al. 2024)", directory=output, seed=seed, data=named
    )
    replicates = 200 if quick else 4000
    if predictions:
        tasks, first, cases = role_tasks(predictions, seed=seed), EVALUATED, []
    else:
        tasks, first = trained_tasks(quick=quick, seed=seed), "logistic"
        cases = [case_of_file(found, data, seed=seed) for found in prediction_files(data) if found.binary]
    cases = [case_of_task(task, first, "accuracy") for task in tasks] + cases
    printed = printed_rows(data, predictions)
    measured = {case.name: measure(case, replicates, seed) for case in cases}
    _opening(page, cases, replicates, predictions=predictions is not None)
    _table_1(page, measured, printed)
    shown = cases if predictions else [case for case in cases if case.name in SHOWN][:3]
    figure_1(page, shown, replicates, seed)
    violins(page, "2", "stratification source × design × estimator, accuracy", {"accuracy": measured})
    figure_3(page, cases, measured, shown)
    whole = [task for task in tasks if task.has_probabilities(first)]
    other = {
        outcome: {t.name: measure(case_of_task(t, first, outcome), replicates, seed) for t in whole}
        for outcome in (("squared error", "cross-entropy") if whole else ())
    }
    if whole:
        violins(page, "4", "squared error and cross-entropy", other)
    families = {first: {task.name: measured[task.name] for task in tasks}}
    for family in dict.fromkeys(family for task in tasks for family in task.judges if family != first):
        own = [case_of_task(task, family, "accuracy") for task in tasks if family in task.judges]
        families[family] = {case.name: measure(case, replicates, seed) for case in own}
    # Figure 5 is one model in two trainings, Figure 6 other families; a family's name says which it is.
    trainings = {n: found for n, found in families.items() if n in (first, "naive Bayes") or "prob" in n}
    rest = {name: found for name, found in families.items() if name not in trainings}
    violins(
        page, "5", "one model in two trainings: zero-shot, or not fitted to the task, and fitted", trainings
    )
    violins(page, "6", "other families of models", rest or trainings)
    shifted: dict[str, Measured] = {}
    if not predictions:
        shifted = {c.name: measure(c, replicates, seed) for c in shifted_domains(quick=quick, seed=seed)}
        figure_7(page, shifted)
    add_claims(page, measured, families, other, shifted)
    row_by_row(page, measured, printed)
    the_print_itself(page, printed)
    page.write()
    return page


def _opening(page: Page, cases: list[Case], replicates: int, *, predictions: bool) -> None:
    given = (
        "All tasks are predictions by role: f is the evaluated model, f* is its surrogate, and f*c is the "
        "surrogate calibrated by isotonic regression on a random half of each task. The other half is the "
        "population."
    )
    page.opening += [
        "arXiv 2406.07320. Numbers are the MSE of the method divided by the MSE of the mean of a simple "
        "random sample. As in the paper, values below 1 are better. n = 100 (at most a quarter of the "
        f"population), H = 10, {replicates:,} draws. Allocations are whole numbers with at least one label "
        "per stratum.",
        given
        if predictions
        else "The paper's CLIP models and data are not bundled. Instead, real classifiers are trained on "
        "scikit-learn's data: f on few items and its surrogate f* on many; f*c is f* calibrated by isotonic "
        "regression on a held-out half. For files of the data directory, f is the proxy of the file, f* is a "
        "better column if the file has one, and f*c is calibrated on half of the file.",
    ]
    rows = [[c.name, f"{len(c.z):,}", f"{c.z.mean():.3f}", ", ".join(c.proxies)] for c in cases]
    page.add_table("Populations", ["set", "N", "accuracy", "sources"], rows)


def _table_1(page: Page, measured: dict[str, Measured], printed: Rows) -> None:
    header = ["set", *(f"{arm}: {source}" for arm, sources in ARMS.items() for source in sources)]
    columns = [(arm, source) for arm, sources in ARMS.items() for source in sources]
    rows = [
        [name, *(f"{m.ratios[c]:.2f} ± {m.errors[c]:.2f}" if c in m.ratios else "" for c in columns)]
        for name, m in measured.items()
    ]
    ends = [("smallest printed", 0), ("largest printed", 1)]
    rows += [[name, *(f"{COLUMNS[c][k]:.2f}" if c in COLUMNS else "" for c in columns)] for name, k in ends]
    rows += [
        [f"*{name} (printed)*", *(f"{row[c]:.2f}" if c in row else "" for c in columns)]
        for name, row in printed.items()
    ]
    page.add_table("Table 1, ours ± Monte Carlo standard error, then the print", header, rows)
