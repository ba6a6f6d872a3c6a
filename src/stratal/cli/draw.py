"""`stratal draw`: which units to label, as files for the annotators and for the estimate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

from stratal.cli.command import Needs, command, option, part
from stratal.cli.options import Bounds, Output, Planning, Reading, Seed, Text, Whole
from stratal.cli.output import Result, progress
from stratal.cli.parsing import joined, listed, mapping, pair
from stratal.errors import InputError, near_names, same_name

if TYPE_CHECKING:
    from stratal.designs.handover import Handover
    from stratal.designs.sample import Sample
    from stratal.labels.labels import Labels
    from stratal.planning import Narrowing
    from stratal.population.population import Population


DESIGNS = ("auto", "simple-random", "stratified", "poisson", "proportional-to-size", "systematic", "clusters")

DRAW_NEEDS: dict[str, str | Needs] = {
    "half_width": "with --design auto, stratified or simple-random",
    "strata stratify by allocation minimum": "with --design auto or stratified",
    "residual_sd": "with --design auto, stratified or --half-width",
    "stratify": Needs(
        "other than k-means with --estimand, whose strata are cut by neyman",
        lambda given: given["estimand"] in (None, "mean") or given["stratify"] != "k-means",
    ),
    "confidence_level": "with --half-width",
}
"""What options of planning need where a sample is drawn."""


class SharedDrawOptions(Planning, frozen=True, kw_only=True):
    """How a sample is drawn from a file, for annotators or for a study.

    Parameters
    ----------
    size : str
        Size measure of unequal probabilities: sqrt-variance, equal or a column.
    cluster : str
        Column of groups for --design clusters.
    outcome : str
        What the labels will be: binary, bounded (with --bounds) or unbounded; kept in the sample.

    Examples
    --------
    >>> SharedDrawOptions(file=Path("p.csv"), budget=100).seed
    0
    """

    seed: Seed = 0
    design: Annotated[str, option(f"{', '.join(DESIGNS)}; auto is as recommended.")] = "auto"
    size: Annotated[str, option(needs="with --design poisson or proportional-to-size")] = "sqrt-variance"
    cluster: Annotated[Text, option(needs="with --design clusters")] = None
    outcome: Annotated[Text, option(shown="as the proxy's bounds or the model's answers tell")] = None
    bounds: Bounds = None

    def sample(self, *, pilot: bool = False) -> Sample:
        """Draw the first round; of a half-width only a pilot, if that is asked for."""
        if self.design not in DESIGNS[:3]:
            return _unequal(self)
        made = self.plan(pilot=pilot)
        with progress("drawing"):
            return made.using(None if self.design == "auto" else self.design).draw(self.seed)

    def with_outcome(self, sample: Sample) -> Sample:
        """Return the sample with what is known of the labels that it will get."""
        if self.outcome is None and self.bounds is None:
            return sample
        return sample.with_outcome(self.outcome or "bounded", pair("--bounds", self.bounds))


class DrawOptions(SharedDrawOptions, frozen=True, kw_only=True):
    """The options of `draw`: how to draw, where to write, and how to go on from an earlier sample.

    Parameters
    ----------
    extend : SAMPLE
        A sample with labels, to go on from.
    labels : paths
        Labels so far, for --extend; may be repeated.
    value : str
        Column of the label, for --extend.
    positive : LABEL
        The label that counts as 1, and every other as 0, for --extend.
    map : LABEL=NUMBER,…
        What labels count as, for --extend: a number, a class (kitty=cat), or no answer (unsure=).
    additional : int
        Units to add, for --extend.
    learner : str
        With --extend and --additional: send new labels where this learner predicts worst, for estimate
        --calibration: gradient-boosting, logistic-regression or ridge, from --features.

    Examples
    --------
    >>> DrawOptions(file=Path("p.csv"), output=Path("audit")).labels is None
    True
    """

    output: Output
    extend: Path | None = None
    labels: Annotated[list[Path] | None, option(needs="with --extend")] = None
    value: Annotated[Text, option(needs="with --extend", shown="label")] = None
    positive: Annotated[Text, option(needs="with --extend")] = None
    map: Annotated[Text, option(needs="with --extend")] = None
    additional: Annotated[Whole, option(needs="with --extend")] = None
    learner: Annotated[Text, option(needs=("with --extend", "with --additional"))] = None


FIRST_ROUND = "budget seed design size cluster estimand residual_sd strata stratify by allocation minimum"


@command(
    DrawOptions,
    without="assume",
    needs={FIRST_ROUND: "without --extend (in a first round)", **DRAW_NEEDS},
)
def draw(asked: DrawOptions) -> Result:
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
            return _enough(asked, sample, needed)
    sample = asked.with_outcome(sample)
    return _drawn(asked, sample, write_handover(sample, asked.output), needed)


def _drawn(asked: DrawOptions, sample: Sample, written: Handover, needed: Narrowing | None) -> Result:
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
    first_of_ids = asked.extend is None and not sample.shown
    page = handover_page(found, _strata(sample), shown=not first_of_ids)
    labels = [*(asked.labels or []), written.to_label]
    if asked.half_width is None:
        return Result(found, page, ("estimate", written.sample, *labels, *_known(asked, sample)))
    given = [word for path in labels for word in ("--labels", path)]
    words = ["--extend", written.sample, *given, "--half-width", asked.half_width]
    if asked.confidence_level != 0.95:
        words += ["--confidence-level", asked.confidence_level]
    words += _known(asked, sample) if sample.estimand is None else _meant(asked)
    return Result(found, page, ("draw", asked.file, *words, "--output", f"{asked.output}-next"))


def _known(asked: DrawOptions, sample: Sample) -> list[str | Path]:
    """Return the options that the estimate needs besides the labels."""
    from stratal.estimation.estimand import as_estimand

    found = _meant(asked)
    if sample.estimand is None:
        return [*found, "--predicted", sample.predicted] if sample.predicted else found
    return [*found, "--population", asked.file] if as_estimand(sample.estimand).reads_population else found


def _meant(asked: DrawOptions) -> list[Any]:
    """Return the options that say what labels count as."""
    given = (("--positive", asked.positive), ("--map", asked.map))
    return [word for name, value in given if value is not None for word in (name, value)]


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
    given = replace(given, positive=asked.positive, mapping=mapping("--map", asked.map))
    with progress("reading and drawing"):
        population = population_again(part(Reading, asked), earlier)
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
            features=listed(asked.features) or None,
        )
    return larger, needed


def _enough(asked: DrawOptions, sample: Sample, needed: Narrowing) -> Result:
    """Say that no more labels are needed, or that none are left."""
    every = "every unit that matters is drawn" if needed.estimand else "every unit is drawn"
    reason = "the interval is narrow enough" if needed.reached else every
    return Result(
        {"sample": str(asked.extend), "new": 0, "half_width": needed.wanted, "needed": needed.to_dict()},
        f"No more labels: {reason} (± {needed.half_width:.4g}, asked ± {needed.wanted:g}).",
        ("estimate", asked.extend, *(asked.labels or []), *_known(asked, sample)),
    )


def _unequal(asked: SharedDrawOptions) -> Sample:
    """Return a sample of a design other than simple random and stratified sampling."""
    from stratal.designs import Design

    kind = Design.of_kind(asked.design)
    if kind is None:
        raise InputError("no such design", given=repr(asked.design), allowed=", ".join(DESIGNS))
    reading, design, budget = part(Reading, asked), asked.design, asked.budget
    if budget is None:
        raise InputError(f"--design {design} needs --budget", action="Add --budget N, the number of labels.")
    if asked.cluster is not None:
        reading = structs.replace(reading, groups=joined(*reading.group_names, asked.cluster))
    if asked.size not in ("equal", "sqrt-variance"):
        reading = structs.replace(reading, features=joined(*listed(reading.features), asked.size))
    made: Design = kind.of_options(budget, asked.size, asked.cluster)
    with progress("drawing"):
        return made.draw(reading.population(), asked.seed)


def _strata(sample: Sample) -> list[list[Any]]:
    """Return name, units and drawn units of each stratum; nothing where the design has none."""
    names, sizes = sample.design.stratum_names, sample.summary.sizes.tolist()
    if len(names) != len(sizes):
        return []
    return [list(row) for row in zip(names, sizes, sample.n_h.tolist(), strict=True)]


def so_far(
    reading: Reading, sample: Path, labels: list[Path], value: str | None
) -> tuple[Sample, Labels, bool | str]:
    """Read a sample and its labels; the third is the column of the model's answers, if labels are classes."""
    from stratal.designs.sample import Sample
    from stratal.labels.label_file import read_labels

    earlier = Sample.read(sample)
    given = read_labels(*labels, id_name=earlier.id_name, value=value)
    return earlier, given, earlier.predicted if reading.predicted and earlier.predicted else False


def as_drawn(reading: Reading, earlier: Sample) -> Reading:
    """Return how to read the file that a sample was drawn from, as far as the sample knows.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.5]), seed=7)
    >>> as_drawn(Reading(file=Path("p.csv")), sample).proxy
    'proxy'
    """
    known = structs.replace(
        reading,
        id=reading.id or earlier.id_name,
        proxy=reading.proxy or (None if reading.softmax else ",".join(earlier.proxy_names)),
        groups=reading.groups or ",".join(earlier.groups),
        show=reading.show or ",".join(earlier.shown),
        predicted=reading.predicted or earlier.predicted,
    )
    return known.with_columns_of(earlier.estimand)


def population_again(reading: Reading, earlier: Sample) -> Population:
    """Read the file that a sample was drawn from; of another one say that it is, and what it lacks.

    Examples
    --------
    >>> import stratal, tempfile
    >>> file = Path(tempfile.mkdtemp(), "p.csv")
    >>> _ = file.write_text("id,text\\na,x\\nb,y\\n")
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.5, 0.7]), seed=7)
    >>> population_again(Reading(file=file), sample)
    Traceback (most recent call last):
    stratal.errors.InputError: ...p.csv: the sample was not drawn from this file, which lacks 'proxy' ...
    """
    from stratal.population.inspection import column_names

    asked = as_drawn(reading, earlier)
    try:
        return asked.population()
    except InputError as error:
        columns = (name for text in (asked.proxy, asked.groups, asked.show) for name in listed(text))
        named = {asked.id, asked.predicted, *columns}
        existing = column_names(asked.file, **asked.of_file)
        own = (earlier.id_name, *earlier.proxy_names, *earlier.groups, *earlier.shown)
        lacking = [name for name in own if name in named and same_name(name, existing) is None]
        if not lacking:
            raise
        what = ", ".join(map(repr, lacking))
        raise InputError(
            f"{asked.file}: the sample was not drawn from this file, which lacks {what}",
            given=f"columns {near_names('', existing)}",
            action="Give the file that it was drawn from, unchanged: its other units are drawn next.",
        ) from error
