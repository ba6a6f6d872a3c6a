"""`stratal simulate` and `stratal demo`: samples of data whose outcomes are all known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from stratal.cli.command import command, option
from stratal.cli.options import ConfidenceLevel, EstimandText, Number, Reading, Seed, Target, Text, Whole
from stratal.cli.output import Result, counting, progress
from stratal.cli.parsing import listed, pair, whole_numbers
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.estimation.estimand import Estimand
    from stratal.simulation import SimulationTable


@command()
def demo(
    budget: Annotated[int, option("Labels that can be bought.")] = 100,
    seed: Seed = 7,
    output: Annotated[
        Path | None, option("Leave predictions.parquet and labels.csv in this directory.")
    ] = None,
    label: Annotated[Path | None, option("Fill in the labels of this table, and do nothing else.")] = None,
) -> Result:
    """Train a classifier on handwritten digits, then find out how good it is from a few labels."""
    from stratal.report.estimates import answer_page
    from stratal.report.pages import plan_page
    from stratal.simulation.demonstration import fill_labels, run, write_data

    if label is not None:
        filled = fill_labels(label)
        return Result(
            {"file": str(label), "labels": filled},
            f"Filled in {filled} labels of {label}.",
            ("estimate", label.with_name("sample.parquet"), label),
        )
    with progress("training, planning, drawing, labelling"):
        shown = run(budget=budget, seed=seed)
    written = write_data(shown.data, output) if output is not None else None
    then: list[Any] = []
    if written is not None:
        then = ["", f"Wrote {written[0]} and {written[1]} (the true labels)."]
        then += [("plan", written[0], "--proxy", "confidence", "--budget", budget)]
    return Result(
        shown.to_dict() | ({"output": str(output)} if written else {}),
        [*shown.opening(), ""],
        plan_page(shown.plan.to_dict(), details=False),
        "",
        answer_page(shown.estimate.to_dict()),
        ["", shown.closing(), *then],
    )


SPARK = "spark"

MEANS_DESIGNS = "simple-random,k-means:10:proportional,k-means:10:robust,k-means:10:two-round"
ESTIMANDS_DESIGNS = "simple-random,planned,two-round"


class SimulateOptions(Reading, frozen=True, kw_only=True):
    """The options of `simulate`.

    Parameters
    ----------
    outcome : str
        Column of the outcome, known for every row.
    budget : N,…
        Numbers of labels.
    design : DESIGN,…
        simple-random, or stratification:number:allocation[:pilot[:step]]; allocations: proportional, equal,
        neyman, robust, stratppi, oracle, two-round, opt-a1, opt-a2. Or, a millisecond or more each:
        poisson, proportional-to-size, systematic, planned, two-round (a plan, and half of it as a pilot);
        so is every design with --estimand.
    estimator : NAME,…
        horvitz-thompson, hajek, difference, ppi++ or stratppi.
    interval : NAME,…
        auto, t, normal, wilson, …
    replicates : int
        Samples drawn of each design.
    target_error : float
        Report the labels at which the mean absolute error falls to this.
    workers : int
        Processes; with --engine spark its workers take their place.
    resume : path
        Parquet file of finished cells; a killed run goes on from it.
    output : path
        Write the table to this Parquet file, over one that exists.
    figures : path
        Write figures to this directory.

    Examples
    --------
    >>> SimulateOptions(file=Path("pilot.csv"), outcome="correct", margin=True).scaled
    False
    """

    outcome: str
    budget: str = "50,100,200"
    design: Annotated[Text, option(shown=f"{MEANS_DESIGNS}; {ESTIMANDS_DESIGNS} with --estimand")] = None
    estimator: Annotated[str, option(needs="without --estimand")] = "horvitz-thompson"
    interval: Annotated[str, option(needs="without --estimand")] = "auto"
    replicates: Annotated[Whole, option(shown="3000; 300 with --estimand")] = None
    estimand: EstimandText = None
    seed: Seed = 0
    confidence_level: ConfidenceLevel = 0.95
    target: Target = "population"
    target_error: Number = None
    workers: Annotated[int, option(needs="with --engine duckdb")] = 1
    resume: Path | None = None
    output: Path | None = None
    figures: Path | None = None

    @property
    def scaled(self) -> bool | None:
        """Whether the proxy is on the outcome's scale; None where that is to be seen from its values."""
        return False if self.margin else None

    @property
    def outcome_bounds(self) -> tuple[float, float] | None:
        """The outcome's bounds, if they were given."""
        return pair("--bounds", self.bounds)

    def question(self) -> Estimand | None:
        """The estimand, if it is another than the mean."""
        from stratal.estimation.estimand import as_estimand

        requested = as_estimand(self.estimand)
        return None if requested.of_one_outcome else requested

    def requested_workers(self) -> Any:
        """Processes, or the Spark session that the file is read with."""
        reading = self.of_file
        if reading["engine"] != SPARK:
            return self.workers
        from stratal.tables.spark_files import session_at

        return session_at(reading["master"])


@command(
    SimulateOptions,
    without="groups by show features second_moment softmax missing label",
    needs={"predicted": "with --estimand or --answers", "margin bounds": "without --estimand"},
)
def simulate(requested: SimulateOptions) -> Result:
    """Draw thousands of samples from labelled data, and measure every design and estimator on them.

    With --estimand it shows what a plan for F1, a difference of models or a quantile would have saved:
    --outcome is then the column of labels as annotators would give them.
    """
    from stratal.report.pages import simulation_page
    from stratal.report.text import plain

    check_places(requested.file, requested.output, requested.figures, requested.resume)
    if requested.target_error is not None and not requested.target_error > 0:
        raise InputError(
            "--target-error must be positive",
            given=requested.target_error,
            allowed="above 0, in the outcome's units, such as 0.01",
        )
    table = _simulated(requested)
    found = table.to_dict()
    written = [] if requested.output is None else [table.to_parquet(requested.output)]
    if requested.figures is not None:
        from stratal.report.figures import write_figures

        level, name = requested.confidence_level, requested.file.name
        written += write_figures(found["rows"], requested.figures, confidence_level=level, data=name)
    reached = [] if requested.target_error is None else plain(table.labels_to_reach(requested.target_error))
    found |= {"labels_to_reach": reached, "written": [str(path) for path in written]}
    return Result(found, simulation_page(found, requested.target_error))


def _simulated(requested: SimulateOptions) -> SimulationTable:
    """Read the labelled data and simulate on them."""
    from stratal.simulation import simulate as run
    from stratal.simulation.benchmark import read_benchmark

    question, bounds = requested.question(), requested.outcome_bounds
    population, labels = read_benchmark(
        requested.file,
        requested.outcome,
        listed(requested.proxy),
        estimand=question,
        bounds=bounds,
        scaled=requested.scaled,
        predicted=requested.predicted,
        answers=listed(requested.answers) or None,
        history=requested.history,
        id=requested.id,
        **requested.of_file,
    )
    with counting("simulating") as advance:
        return run(
            population,
            labels,
            designs=listed(requested.design or (ESTIMANDS_DESIGNS if question else MEANS_DESIGNS)),
            estimators=None if question else listed(requested.estimator),
            intervals=listed(requested.interval),
            budgets=whole_numbers("--budget", requested.budget),
            replicates=requested.replicates or (300 if question else 3000),
            seed=requested.seed,
            confidence_level=requested.confidence_level,
            bounds=bounds,
            target=requested.target,
            workers=requested.requested_workers(),
            store=requested.resume,
            progress=advance,
            estimand=question,
        )


def check_places(file: Path, output: Path | None, figures: Path | None, resume: Path | None = None) -> None:
    """Refuse, before anything is simulated, places that nothing can be written to.

    Examples
    --------
    >>> check_places(Path("pilot.csv"), Path("results.csv"), None)
    Traceback (most recent call last):
    stratal.errors.InputError: --output is a Parquet file (given: results.csv; allowed: .parquet or .pq).
    """
    from stratal.simulation.simulation_table import refuse_others_file

    if output is not None:
        if output.suffix.lower() not in (".parquet", ".pq"):
            raise InputError("--output is a Parquet file", given=output, allowed=".parquet or .pq")
        if not output.parent.is_dir():
            raise InputError(f"{output}: there is no directory {output.parent}", action="Make it first.")
        if output.is_dir():
            raise InputError(f"{output}: is a directory", allowed="a file")
        for other, what in ((file, "the data"), (resume, "the finished cells of --resume")):
            if other is not None and output.resolve() == other.resolve():
                raise InputError(
                    f"--output would overwrite {what}", given=output, action="Choose another file."
                )
        refuse_others_file(output)
    if resume is not None and resume.resolve() == file.resolve():
        raise InputError("--resume would overwrite the data", given=resume, action="Choose another file.")
    if figures is not None:
        found = next(place for place in (figures, *figures.parents) if place.exists())
        if not found.is_dir():
            raise InputError(f"{found}: is not a directory", action="Choose another --figures.")
