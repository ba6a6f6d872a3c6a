"""`stratal draw`: which units to label, as files for the annotators and for the estimate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratal.cli import options as o
from stratal.cli.again import population_again, so_far
from stratal.cli.output import print_json, print_next, print_page, print_text, progress
from stratal.cli.records import takes
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.designs.handover import Handover
    from stratal.designs.sample import Sample
    from stratal.planning import Narrowing


DESIGNS = ("auto", "simple-random", "stratified", "poisson", "proportional-to-size", "systematic", "clusters")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDrawOptions(o.Planning):
    """How a sample is drawn from a file, for annotators or for a study.

    Examples
    --------
    >>> SharedDrawOptions(file=Path("p.csv"), budget=100).seed
    0
    """

    seed: o.Seed = 0
    design: Annotated[str, typer.Option(help=f"{', '.join(DESIGNS)}; auto is as recommended.")] = "auto"
    size: Annotated[
        str, typer.Option(help="Size measure of unequal probabilities: sqrt-variance, equal or a column.")
    ] = "sqrt-variance"
    cluster: Annotated[str | None, typer.Option(help="Column of groups for --design clusters.")] = None
    outcome: Annotated[
        str | None,
        typer.Option(
            help="What the labels will be: binary, bounded (with --bounds) or unbounded; kept in the sample.",
            show_default="as the proxy's bounds or the model's answers tell",
        ),
    ] = None
    bounds: o.Bounds = None

    def sample(self, *, pilot: bool = False) -> Sample:
        """Draw the first round; of a half-width only a pilot, if that is asked for."""
        if self.design not in DESIGNS:
            raise InputError("no such design", given=repr(self.design), allowed=", ".join(DESIGNS))
        if self.design not in DESIGNS[:3]:
            return _unequal(self)
        made = self.plan(pilot=pilot)
        with progress("drawing"):
            return made.using(None if self.design == "auto" else self.design).draw(self.seed)

    def with_outcome(self, sample: Sample) -> Sample:
        """Return the sample with what is known of the labels that it will get."""
        if self.outcome is None and self.bounds is None:
            return sample
        return sample.with_outcome(self.outcome or "bounded", o.pair("--bounds", self.bounds))


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawOptions(SharedDrawOptions):
    """The options of `draw`: how to draw, where to write, and how to go on from an earlier sample.

    Examples
    --------
    >>> DrawOptions(file=Path("p.csv"), output=Path("audit"), labels=None).earlier_labels
    []
    """

    output: Annotated[Path, typer.Option(help="Directory to write to; must be empty or not exist.")]
    extend: o.Extend = None
    labels: o.SoFar = None
    value: o.Value = "label"
    additional: Annotated[int | None, typer.Option(help="Units to add, for --extend.")] = None
    learner: Annotated[
        str | None,
        typer.Option(
            help="With --extend and --additional: send new labels where this learner predicts worst, for "
            "estimate --calibration: gradient-boosting, logistic-regression or ridge, from --features."
        ),
    ] = None
    json: o.Json = False

    @property
    def earlier_labels(self) -> list[Path]:
        """The files of the labels so far."""
        return self.labels or []


@takes(DrawOptions, without=("assume",), order=o.DRAWING_ORDER)
def draw(asked: DrawOptions) -> None:
    """Draw the units to label.

    Writes sample.parquet, which the estimate needs, and to_label.csv: ids, the columns of --show and an
    empty column `label`, in random order, without anything that would lead the annotators.

    With --extend, --labels and --additional it draws another round of the same sample, sent to where the
    labels so far say that it helps most; to_label.csv then holds the new units alone.

    With --half-width it draws a pilot; with --extend, --labels and --half-width as many more units as the
    labels say are needed, and none, nothing being written, once the interval is that narrow.
    """
    from stratal.designs.handover import empty_folder, write_handover

    empty_folder(asked.output)
    needed = None
    if asked.extend is None:
        sample = asked.sample(pilot=asked.half_width is not None)
    else:
        sample, needed = _extended(asked, asked.extend)
        if needed is not None and needed.additional == 0:
            _say_enough(asked, sample, needed)
            return
    sample = asked.with_outcome(sample)
    _say_drawn(asked, sample, write_handover(sample, asked.output), needed)


def _say_drawn(asked: DrawOptions, sample: Sample, written: Handover, needed: Narrowing | None) -> None:
    """Say what was drawn and written, and what to do next."""
    from stratal.report import handover_page

    found = {
        "sample": str(written.sample),
        "to_label": str(written.to_label),
        "n": sample.size,
        "seed": sample.seed,
        "design": sample.design.kind,
        "population_size": sample.population_size,
        "round": int(sample.round.max()),
        "new": written.new,
    }
    if asked.half_width is not None:
        several = isinstance(asked.half_width, tuple)
        width = {"half_widths": list(asked.half_width)} if several else {"half_width": asked.half_width}
        found |= width | {"needed": None if needed is None else needed.to_dict()}
    if asked.json:
        print_json(found)
        return
    first_of_ids = asked.extend is None and not sample.shown
    print_page(handover_page(found, _strata(sample), shown=not first_of_ids))
    labels = [*asked.earlier_labels, written.to_label]
    if asked.half_width is None:
        print_next("estimate", written.sample, *labels, *_told(asked, sample))
        return
    given = [word for path in labels for word in ("--labels", path)]
    words = ["--extend", written.sample, *given, "--half-width", asked.half_width]
    if asked.confidence_level != 0.95:
        words += ["--confidence-level", asked.confidence_level]
    if sample.predicted and sample.estimand is None:
        words += ["--predicted", sample.predicted]
    print_next("draw", asked.file, *words, "--output", f"{asked.output}-next")


def _told(asked: DrawOptions, sample: Sample) -> list[str | Path]:
    """Return what the estimate is to be told beside the labels."""
    from stratal.estimation.estimand import as_estimand

    if sample.estimand is None:
        return ["--predicted", sample.predicted] if sample.predicted else []
    return ["--population", asked.file] if as_estimand(sample.estimand).reads_population else []


def _extended(asked: DrawOptions, extend: Path) -> tuple[Sample, Narrowing | None]:
    """Return the sample with another round, and how far its interval is from the half-width asked for."""
    from stratal.planning import labels_needed, next_round

    additional, half_width = asked.additional, asked.half_width
    if not asked.labels or (additional is None) == (half_width is None):
        raise InputError(
            "--extend needs the labels so far and the number of units to add, or a half-width",
            allowed="--extend SAMPLE --labels FILE, with --additional N or --half-width W",
        )
    earlier, given, classes = so_far(asked, extend, asked.labels, asked.value)
    with progress("reading and drawing"):
        population = population_again(o.part(o.Reading, asked), earlier)
        needed = None
        if half_width is not None:
            level = asked.confidence_level
            needed = labels_needed(
                earlier, given, half_width, confidence_level=level, predicted=classes, population=population
            )
            if needed.additional == 0:
                return earlier, needed
        larger = next_round(
            earlier,
            given,
            additional=additional,
            half_width=half_width,
            confidence_level=asked.confidence_level,
            population=population,
            predicted=classes,
            learner=asked.learner,
            features=o.listed(asked.features) or None,
        )
    return larger, needed


def _say_enough(asked: DrawOptions, sample: Sample, needed: Narrowing) -> None:
    """Say that no more labels are needed, or that none are left."""
    if asked.json:
        found = {"new": 0, "half_width": needed.wanted, "needed": needed.to_dict()}
        print_json({"sample": str(asked.extend), **found})
        return
    every = "every unit that matters is drawn" if needed.estimand else "every unit is drawn"
    reason = "the interval is narrow enough" if needed.reached else every
    print_text(f"No more labels: {reason} (± {needed.half_width:.4g}, asked ± {needed.wanted:g}).")
    print_next("estimate", asked.extend, *asked.earlier_labels, *_told(asked, sample))


def _unequal(asked: SharedDrawOptions) -> Sample:
    """Return a sample of a design other than simple random and stratified sampling."""
    from stratal import designs

    reading, design, budget = o.part(o.Reading, asked), asked.design, asked.budget
    if budget is None:
        raise InputError(f"--design {design} needs --budget", action="Add --budget N, the number of labels.")
    made: designs.Design
    if design == "clusters":
        if asked.cluster is None:
            raise InputError(
                "--design clusters needs --cluster COL",
                action="Name the column of the groups that are drawn whole, such as --cluster document.",
            )
        made = designs.ClusterSample(cluster=asked.cluster, budget=budget)
        reading = replace(reading, groups=o.joined(*reading.group_names, asked.cluster))
    elif design == "systematic":
        made = designs.Systematic(budget=budget)
    else:
        unequal = designs.Poisson if design == "poisson" else designs.ProportionalToSize
        made = unequal(budget=budget, size=asked.size)
        if asked.size not in ("equal", "sqrt-variance"):
            reading = replace(reading, features=o.joined(*o.listed(reading.features), asked.size))
    with progress("drawing"):
        return made.draw(reading.population(), asked.seed)


def _strata(sample: Sample) -> list[list[Any]]:
    """Return name, units and drawn units of each stratum; nothing where the design has none."""
    names, sizes = sample.design.stratum_names, sample.summary.sizes.tolist()
    if len(names) != len(sizes):
        return []
    return [list(row) for row in zip(names, sizes, sample.n_h.tolist(), strict=True)]
