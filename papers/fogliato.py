"""Fogliato et al. (2024): Table 1 and Figures 1–7, on classifiers trained here and on files."""

from __future__ import annotations

from pathlib import Path

from papers.classifiers import FAMILIES, trained_tasks
from papers.domains import shifted_domains
from papers.files import prediction_files
from papers.fogliato_claims import add_claims, the_print_itself
from papers.fogliato_figures import figure_1, figure_3, figure_7, violins
from papers.loaders import clip_benchmark
from papers.page import Page
from papers.printed import COLUMNS, printed_rows
from papers.reproduction import command
from papers.sources import ARMS, Case, Measured, case_of_file, case_of_task, cases_of_clip, measure


def reproduce_fogliato(output: Path, *, data: Path | None = None, quick: bool = False, seed: int = 0) -> Page:
    """Reproduce the table and the figures of Fogliato et al.

    Parameters
    ----------
    output : path
    data : path, optional
        Directory of files with columns `z` and `proxy`, and of CLIP-benchmark outputs `TASK/MODEL.npz`.
    quick : bool
        Two tasks and few replicates, to see that it runs.
    seed : int

    Returns
    -------
    Page
    """
    page = Page(
        title="Efficient model evaluation (Fogliato et al. 2024)",
        directory=output,
        seed=seed,
        data="trained here, and files" if data else "trained here",
    )
    replicates = 200 if quick else 4000
    tasks = trained_tasks(quick=quick, seed=seed)
    cases = [case_of_task(task, "logistic", "accuracy") for task in tasks]
    cases += cases_of_clip(clip_benchmark(data), seed=seed)
    cases += [case_of_file(found, data, seed=seed) for found in prediction_files(data) if found.binary]
    measured = {case.name: measure(case, replicates, seed) for case in cases}
    _opening(page, cases, replicates)
    _table_1(page, measured, data)
    figure_1(page, cases, replicates, seed)
    violins(page, "2", "stratification source × design × estimator, accuracy", {"accuracy": measured})
    figure_3(page, cases, measured)
    other = {
        outcome: {t.name: measure(case_of_task(t, "logistic", outcome), replicates, seed) for t in tasks}
        for outcome in ("squared error", "cross-entropy")
    }
    violins(page, "4", "squared error and cross-entropy", other)
    families = {
        f"{family} ({FAMILIES[family]} as surrogate)": {
            t.name: measure(case_of_task(t, family, "accuracy"), replicates, seed) for t in tasks
        }
        for family in FAMILIES
    }
    two = {name: found for name, found in families.items() if name.startswith(("naive", "logistic"))}
    violins(page, "5", "two ways of training one model: naive Bayes and logistic regression", two)
    rest = {name: found for name, found in families.items() if name not in two}
    violins(page, "6", "other families of models", rest)
    domains = shifted_domains(quick=quick, seed=seed)
    shifted = {case.name: measure(case, replicates, seed) for case in domains}
    figure_7(page, shifted)
    add_claims(page, measured, families, other, shifted)
    the_print_itself(page, printed_rows(data))
    page.write()
    return page


def _opening(page: Page, cases: list[Case], replicates: int) -> None:
    page.opening += [
        "arXiv 2406.07320. Figures are MSE of the method over MSE of the mean of a simple random sample: "
        "below 1 is better, as the paper prints it. n = 100 (a quarter of the population at most), H = 10, "
        f"{replicates:,} draws, whole numbers with at least one label per stratum.",
        "The paper's CLIP models and data are not bundled. Here real classifiers are trained on "
        "scikit-learn's data: f on few items, its surrogate f* on many; f*c is f* calibrated by isotonic "
        "regression on a held-out half. Files of the data directory come with f = their proxy; f* where "
        "they have a better column; f*c calibrated on half of the file. CLIP-benchmark outputs are taken "
        "where they are given.",
    ]
    rows = [[c.name, f"{len(c.z):,}", f"{c.z.mean():.3f}", ", ".join(c.proxies)] for c in cases]
    page.add_table("Populations", ["set", "N", "accuracy", "sources"], rows)


def _table_1(page: Page, measured: dict[str, Measured], data: Path | None) -> None:
    header = ["set", *(f"{arm}: {source}" for arm, sources in ARMS.items() for source in sources)]
    columns = [(arm, source) for arm, sources in ARMS.items() for source in sources]
    rows = [
        [
            name,
            *(f"{m.ratios[c]:.2f} ± {m.errors[c]:.2f}" if c in m.ratios else "" for c in columns),
        ]
        for name, m in measured.items()
    ]
    printed = printed_rows(data)
    ends = [("smallest printed", 0), ("largest printed", 1)]
    rows += [[name, *(f"{COLUMNS[c][k]:.2f}" if c in COLUMNS else "" for c in columns)] for name, k in ends]
    rows += [
        [f"*{name} (printed)*", *(f"{row[c]:.2f}" if c in row else "" for c in columns)]
        for name, row in printed.items()
    ]
    page.add_table("Table 1, ours ± Monte Carlo standard error, then the print", header, rows)


if __name__ == "__main__":
    command("fogliato")
