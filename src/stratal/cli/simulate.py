"""`stratal simulate`: which design and estimator would have done best on data whose outcomes are known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratal.cli import options as o
from stratal.cli.output import counting, print_json, print_page
from stratal.cli.records import takes
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.estimation.estimand import Estimand
    from stratal.simulation import SimulationTable


SPARK = "spark"

MEANS_DESIGNS = "simple-random,k-means:10:proportional,k-means:10:robust,k-means:10:two-round"
ESTIMANDS_DESIGNS = "simple-random,planned,two-round"

_ORDER = (
    *(
        "outcome",
        "proxy",
        "id",
        "estimand",
        "predicted",
        "budgets",
        "designs",
        "estimators",
        "intervals",
        "replicates",
        "seed",
    ),
    *("confidence_level", "bounds", "target", "margin", "with_replacement", "target_error", "workers"),
    *("resume", "output", "figures", "delimiter", "directory", "remote", "engine", "master"),
    *("threads", "memory", "progress"),
)
"""How the options follow each other in the help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions(o.Reading):
    """The options of `simulate`.

    Examples
    --------
    >>> SimulateOptions(file=Path("pilot.csv"), outcome="correct", margin=True).scaled
    False
    """

    outcome: Annotated[str, typer.Option(help="Column of the outcome, known for every row.")]
    budgets: Annotated[str, typer.Option(metavar="N,…", help="Numbers of labels.")] = "50,100,200"
    designs: Annotated[
        str | None,
        typer.Option(
            metavar="DESIGN,…",
            help="simple-random, or stratification:number:allocation[:pilot[:step]]; allocations: "
            "proportional, equal, neyman, robust, stratppi, oracle, two-round, opt-a1, opt-a2. Or, a "
            "millisecond or more each: poisson, proportional-to-size, systematic, planned, two-round (a "
            "plan, and half of it as a pilot); so is every design with --estimand.",
            show_default=f"{MEANS_DESIGNS}; {ESTIMANDS_DESIGNS} with --estimand",
        ),
    ] = None
    estimators: Annotated[
        str, typer.Option(metavar="NAME,…", help="horvitz-thompson, hajek, difference, ppi++ or stratppi.")
    ] = "horvitz-thompson"
    intervals: Annotated[str, typer.Option(metavar="NAME,…", help="auto, t, normal, wilson, …")] = "auto"
    replicates: Annotated[
        int | None,
        typer.Option(help="Samples drawn of each design.", show_default="3000; 300 with --estimand"),
    ] = None
    estimand: o.EstimandText = None
    seed: o.Seed = 0
    confidence_level: o.ConfidenceLevel = 0.95
    bounds: o.Bounds = None
    target: o.Target = "population"
    with_replacement: Annotated[bool, typer.Option("--with-replacement", help="Draw with replacement.")] = (
        False
    )
    target_error: Annotated[
        float | None, typer.Option(help="Report the labels at which the mean absolute error falls to this.")
    ] = None
    workers: Annotated[
        int, typer.Option(help="Processes; with --engine spark its workers are asked instead.")
    ] = 1
    resume: Annotated[
        Path | None, typer.Option(help="Parquet file of finished cells; a killed run goes on from it.")
    ] = None
    output: Annotated[
        Path | None, typer.Option(help="Write the table to this Parquet file, over one that exists.")
    ] = None
    figures: Annotated[Path | None, typer.Option(help="Write figures to this directory.")] = None
    json: o.Json = False

    @property
    def scaled(self) -> bool | None:
        """Whether the proxy is on the outcome's scale; None where that is to be seen from its values."""
        return False if self.margin else None

    @property
    def outcome_bounds(self) -> tuple[float, float] | None:
        """The outcome's bounds, if they were given."""
        return o.pair("--bounds", self.bounds)

    def question(self) -> Estimand | None:
        """The estimand, if it is another than the mean."""
        from stratal.estimation.estimand import as_estimand

        asked = as_estimand(self.estimand)
        return None if asked.of_one_outcome else asked

    def asked_workers(self) -> Any:
        """Processes, or the Spark session that the file is read with."""
        if self.engine != SPARK:
            return self.workers
        from stratal.tables.spark_files import session_at

        return session_at(self.master)


@takes(
    SimulateOptions,
    without=(
        *("groups", "by", "show", "features", "proxy_bounds", "second_moment", "softmax"),
        *("missing", "label"),
    ),
    order=_ORDER,
)
def simulate(asked: SimulateOptions) -> None:
    """Draw thousands of samples from labelled data, and measure every design and estimator on them.

    With --estimand it shows what a plan for F1, a difference of models or a quantile would have saved:
    --outcome is then the column of labels as annotators would give them.
    """
    from stratal.report import plain, simulation_page

    check_places(asked.file, asked.output, asked.figures, asked.resume)
    if asked.target_error is not None and not asked.target_error > 0:
        raise InputError(
            "--target-error must be positive",
            given=asked.target_error,
            allowed="above 0, in the outcome's units, such as 0.01",
        )
    table = _simulated(asked)
    found = table.to_dict()
    written = [] if asked.output is None else [table.to_parquet(asked.output)]
    if asked.figures is not None:
        from stratal.report.figures import write_figures

        level, name = asked.confidence_level, asked.file.name
        written += write_figures(found["rows"], asked.figures, confidence_level=level, data=name)
    reached = [] if asked.target_error is None else plain(table.labels_to_reach(asked.target_error))
    found |= {"labels_to_reach": reached, "written": [str(path) for path in written]}
    if asked.json:
        print_json(found)
        return
    print_page(simulation_page(found, asked.target_error))


def _simulated(asked: SimulateOptions) -> SimulationTable:
    """Read the labelled data and simulate on them."""
    from stratal.simulation import simulate as run
    from stratal.simulation.reading import read_benchmark

    question, bounds = asked.question(), asked.outcome_bounds
    population, labels = read_benchmark(
        asked.file,
        asked.outcome,
        o.listed(asked.proxy),
        estimand=question,
        bounds=bounds,
        scaled=asked.scaled,
        predicted=asked.predicted,
        id=asked.id,
        **asked.of_file,
    )
    with counting("simulating") as advance:
        return run(
            population,
            labels,
            designs=o.listed(asked.designs or (ESTIMANDS_DESIGNS if question else MEANS_DESIGNS)),
            estimators=None if question else o.listed(asked.estimators),
            intervals=o.listed(asked.intervals),
            budgets=o.whole_numbers("--budgets", asked.budgets),
            replicates=asked.replicates or (300 if question else 3000),
            seed=asked.seed,
            confidence_level=asked.confidence_level,
            bounds=bounds,
            target=asked.target,
            with_replacement=asked.with_replacement,
            workers=asked.asked_workers(),
            store=asked.resume,
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
