"""`stratal simulate` and `stratal demo`: samples of data whose outcomes are all known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Struct

import stratal
from stratal.cli.command import Option, command, selected_fields
from stratal.cli.conditions import with_any, without_all
from stratal.cli.options import ConfidenceLevel, EstimandText, Reading, Seed, Target, Text, Whole
from stratal.cli.output import Result, show_progress
from stratal.cli.parsing import parse_meanings, parse_pair, parse_whole_numbers
from stratal.errors import InputError
from stratal.names import split_names
from stratal.protocols import JsonDict


class DemoOptions(Struct, frozen=True, kw_only=True):
    """The options of `demo`.

    Parameters
    ----------
    budget : int
        Labelling budget (number of labels).
    output : path
        Write predictions.parquet and labels.csv to this directory.
    label : path
        Only fill in the labels of this table.
    """

    budget: int = 100
    seed: Seed = 7
    output: Path | None = None
    label: Path | None = None


@command(DemoOptions)
def demo(requested: DemoOptions) -> Result:
    """Estimate the accuracy of a classifier of handwritten digits."""
    from stratal.report.estimates import answer_page
    from stratal.report.pages import plan_page
    from stratal.simulation.demonstration import TRAINING_IMAGES, fill_labels, run_demonstration, write_data

    budget = requested.budget
    output = requested.output
    file_to_label = requested.label
    if file_to_label is not None:
        n_labels = fill_labels(file_to_label)
        return Result(
            {"file": str(file_to_label), "labels": n_labels},
            f"Filled in {n_labels} labels in {file_to_label}.",
            ("estimate", file_to_label.with_name("sample.parquet"), file_to_label),
        )
    with show_progress("training, planning, drawing, labelling"):
        demonstration = run_demonstration(budget=budget, seed=requested.seed)
    described: JsonDict = {
        "plan": demonstration.plan.to_dict(),
        "estimate": demonstration.estimate.to_dict(),
        "truth": demonstration.truth,
    }
    images = f"{len(demonstration.data.ids):,}"
    if demonstration.truth in demonstration.estimate.confidence_interval():
        inside = "inside"
    else:
        inside = "outside"
    opening = [
        f"A classifier of handwritten digits, trained on {TRAINING_IMAGES} images, has classified "
        f"{images} more.",
        f"How often is it right? The budget is {demonstration.estimate.n} labels.",
        "",
    ]
    closing = f"From all {images} labels: {100 * demonstration.truth:.1f}%, {inside} the interval."
    if output is not None:
        described["output"] = str(output)
        predictions, labels = write_data(demonstration.data, output)
        options = ("--proxy", "confidence", "--predicts", "right", "--budget", budget)
        next_command = ("plan", predictions, *options, "--output", "plan.json")
        # The next commands lead to the answer, so that it is not printed before them.
        line = f"Wrote {predictions} and {labels} (the true labels)."
        return Result(described, opening, line, next_command)
    page = plan_page(described["plan"], details=False)
    answer = answer_page(described["estimate"])
    return Result(described, opening, page, "", answer, ["", closing])


# Default designs: for the mean of one outcome, and for other estimands or with a history.
MEANS_DESIGNS = "simple-random,k-means:10:proportional,k-means:10:robust,k-means:10:two-round"
ESTIMANDS_DESIGNS = "simple-random,planned,two-round"


class SimulateOptions(Reading, frozen=True, kw_only=True):
    """The options of `simulate`.

    Parameters
    ----------
    outcome : str
        Column of the outcome, which must be known for every row.
    budget : N,…
        Numbers of labels.
    design : DESIGN,…
        simple-random, or stratification:number:allocation[:pilot[:step]] with the allocations proportional,
        equal, neyman, robust, stratppi, oracle, two-round, opt-a1 and opt-a2. Slower (at least 1 ms per
        sample): poisson, proportional-to-size, systematic, planned, two-round (a plan with half of the budget
        as a pilot), and every design with --estimand.
    estimator : NAME,…
        horvitz-thompson, hajek, difference, ppi++, stratppi, or auto (as in the command estimate).
    interval : NAME,…
        auto, t, normal, wilson, …
    replicates : int, default 3000; 300 with --estimand or --history
        Number of samples for each design.
    workers : int
        Number of processes.
    resume : path
        Parquet file of finished cells, from which an interrupted run continues.
    output : path
        Parquet file to write the table to; an existing one is replaced.
    figures : path
        Write figures to this directory.
    """

    outcome: str
    budget: str = "50,100,200"
    design: Annotated[
        Text, Option(default_text=f"{MEANS_DESIGNS}; {ESTIMANDS_DESIGNS} with --estimand or --history")
    ] = None
    estimator: Annotated[
        Text, Option(needs=(without_all("estimand"),), default_text="horvitz-thompson; auto with --history")
    ] = None
    interval: Annotated[str, Option(needs=(without_all("estimand"),))] = "auto"
    replicates: Whole = None
    estimand: EstimandText = None
    seed: Seed = 0
    confidence_level: ConfidenceLevel = 0.95
    target: Target = "population"
    workers: int = 1
    resume: Path | None = None
    output: Path | None = None
    figures: Path | None = None


@command(
    SimulateOptions,
    without="groups by show features softmax missing label",
    needs={"predicted": with_any("estimand", "answers"), "margin bounds": without_all("estimand")},
)
def simulate(requested: SimulateOptions) -> Result:
    """Compare designs and estimators on samples from labelled data.

    With --estimand, it measures the gain of a plan for F1, a difference between models or a quantile;
    --outcome is then the column of the labels as annotators would give them.
    """
    from stratal.estimation import as_estimand
    from stratal.report.pages import simulation_page
    from stratal.simulation.demonstration import read_benchmark

    check_output_paths(requested)
    bounds = parse_pair("--bounds", requested.bounds)
    requested_estimand = as_estimand(requested.estimand)
    # The mean of one outcome has a faster simulation.
    estimand = None if requested_estimand.of_one_outcome else requested_estimand
    has_history = requested.history is not None
    default_estimator = "auto" if has_history else "horvitz-thompson"
    default_designs = MEANS_DESIGNS
    default_replicates = 3000
    # Each sample of these is planned and estimated separately.
    if estimand is not None or has_history:
        default_designs = ESTIMANDS_DESIGNS
        default_replicates = 300
    population, labels = read_benchmark(
        requested.file,
        requested.outcome,
        split_names(requested.proxy),
        estimand=estimand,
        bounds=bounds,
        scaled=False if requested.margin else None,
        answers=split_names(requested.answers) or None,
        predicts=parse_meanings(requested.predicts),
        **selected_fields(requested, "predicted", "history", "id"),
        **requested.source_keywords,
    )
    with show_progress("simulating") as advance:
        table = stratal.simulate(
            population,
            labels,
            designs=split_names(requested.design or default_designs),
            estimators=None if estimand else split_names(requested.estimator or default_estimator),
            intervals=split_names(requested.interval),
            budgets=parse_whole_numbers("--budget", requested.budget),
            replicates=requested.replicates or default_replicates,
            bounds=bounds,
            **selected_fields(requested, "seed", "confidence_level", "target", "workers"),
            store=requested.resume,
            progress=advance,
            estimand=estimand,
        )
    described = table.to_dict()
    written_files = []
    if requested.output is not None:
        written_files.append(table.to_parquet(requested.output))
    if requested.figures is not None:
        from stratal.report.figures import write_figures

        level = requested.confidence_level
        name = requested.file.name
        written_files += write_figures(
            described["rows"], requested.figures, confidence_level=level, data=name
        )
    described["written"] = [str(path) for path in written_files]
    return Result(described, simulation_page(described))


def check_output_paths(requested: SimulateOptions) -> None:
    """Raise an error, before the simulation, if an output cannot be written."""
    from stratal.simulation import SimulationTable

    output = requested.output
    figures = requested.figures
    paths = [path.resolve() for path in (requested.file, output, requested.resume) if path is not None]
    if len({*paths}) < len(paths):
        problem = "--output or --resume would overwrite the data or each other"
        raise InputError(problem, action="Choose another file.")
    if output is not None:
        if output.suffix.lower() not in (".parquet", ".pq"):
            raise InputError("--output must be a Parquet file", given=output, allowed=".parquet or .pq")
        if not output.parent.is_dir():
            raise InputError(f"{output}: there is no directory {output.parent}", action="Create it first.")
        if output.exists():
            # Raises an error for a file that is not a table of a simulation.
            SimulationTable.from_parquet(output)
    if figures is not None:
        existing_path = next(path for path in (figures, *figures.parents) if path.exists())
        if not existing_path.is_dir():
            raise InputError(f"{existing_path} is not a directory", action="Choose another --figures.")
