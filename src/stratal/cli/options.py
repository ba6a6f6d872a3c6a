"""Options that several subcommands share, and the records that carry them to the library."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer
from typer.models import ArgumentInfo

from stratal.cli.output import Told, progress
from stratal.cli.parsing import HalfWidth
from stratal.cli.parsing import finite_number as finite_number
from stratal.cli.parsing import joined as joined
from stratal.cli.parsing import listed as listed
from stratal.cli.parsing import mapping as mapping
from stratal.cli.parsing import pair as pair
from stratal.cli.parsing import place as place
from stratal.cli.parsing import whole_number as whole_number
from stratal.cli.parsing import whole_numbers as whole_numbers
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.planning.plan import Plan
    from stratal.population import Population

Chosen = TypeVar("Chosen")

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", parser=place, help="Predictions: Parquet, CSV, JSON, Excel, Feather."),
]
Study = Annotated[Path, typer.Argument(metavar="STUDY", help="The folder that `init` made.")]
Id = Annotated[
    str | None,
    typer.Option(
        "--id", help="Column of unique ids; row for the number of the row.", show_default="id or item_id"
    ),
]
Proxy = Annotated[str | None, typer.Option(metavar="COL,…", help="Column(s) that predict the outcome.")]
Groups = Annotated[str | None, typer.Option(metavar="COL,…", help="Columns of categories.")]
Show = Annotated[str | None, typer.Option(metavar="COL,…", help="Columns shown to the annotators.")]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="COL,…", help="Columns of numbers for --stratify features or --learner; also 'emb_*'."
    ),
]
Predicted = Annotated[
    str | None, typer.Option(help="Column of the model's answer; kept in the sample, not shown.")
]
ProxyBounds = Annotated[
    str | None, typer.Option(help="Bounds of the outcome that the proxy predicts: LOW,HIGH.")
]
SecondMoment = Annotated[str | None, typer.Option(help="Column of E[z² | x], where the proxy has one.")]
Margin = Annotated[bool, typer.Option("--margin", help="The proxy only orders units; it is on no scale.")]
Delimiter = Annotated[
    str | None, typer.Option(help="Delimiter of a CSV file.", show_default="found in the header")
]
Softmax = Annotated[
    str | None,
    typer.Option(
        metavar="COL,… or PATTERN",
        help="Columns of probabilities that add up to 1; the proxy is the answer's.",
    ),
]
Missing = Annotated[
    str, typer.Option(help="Units without a proxy: refuse, or own-stratum to keep them as one of their own.")
]
LabelKind = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="KIND",
        help="What annotators will say, where the proxy is on another scale: pass/fail or LOW,HIGH.",
    ),
]
Remote = Annotated[bool, typer.Option("--remote", help="FILE may be an address: https://… or s3://….")]
Engine = Annotated[str, typer.Option(help="What reads FILE: duckdb or spark.")]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where Spark runs: local[2], spark://host:7077.",
        show_default="all cores of this machine",
    ),
]
Threads = Annotated[
    int | None, typer.Option(help="Threads that DuckDB may use.", show_default="one for each core")
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="AMOUNT",
        help="What DuckDB may hold before it spills to disk: 2GB.",
        show_default="a few hundred MB for each thread",
    ),
]
Directory = Annotated[bool, typer.Option("--directory", help="FILE is a directory of Parquet parts.")]
Budget = Annotated[int | None, typer.Option(help="Labels that can be bought.")]
EstimandText = Annotated[
    str | None,
    typer.Option(
        "--estimand",
        metavar="NAME:OF",
        help="What the labels are for: f1:match, recall:match, difference:model_a,model_b, mean@language, …; "
        "several with semicolons between them, or the option once for each.",
        show_default="the mean",
    ),
]
Assume = Annotated[
    str, typer.Option(help="What --half-width assumes of the proxy: cautious, expected or hopeful.")
]
ResidualSd = Annotated[
    float | None,
    typer.Option(
        help="Standard deviation of outcome less proxy, for outcomes without bounds.",
        show_default="half the proxy's own",
    ),
]
Extend = Annotated[Path | None, typer.Option(metavar="SAMPLE", help="A sample with labels, to go on from.")]
SoFar = Annotated[
    list[Path] | None, typer.Option("--labels", help="Labels so far, for --extend; may be repeated.")
]
Value = Annotated[str, typer.Option(help="Column of the label, for --extend.")]
StrataCount = Annotated[
    int | None, typer.Option("--strata", help="Number of strata.", show_default="10, fewer below 50 labels")
]
Stratify = Annotated[
    str | None,
    typer.Option(
        help="k-means, neyman, equal-size, equal-width, cum-sqrt-f, cum-cbrt-f, weighted-mean, "
        "gaussian-mixture, features, category or none.",
        show_default="k-means; neyman with --estimand",
    ),
]
By = Annotated[str | None, typer.Option(help="Column of categories to stratify by.")]
AllocationRule = Annotated[
    str | None,
    typer.Option(
        "--allocation",
        help="robust, proportional, equal, neyman, power or stratppi.",
        show_default="robust; neyman with --estimand",
    ),
]
Minimum = Annotated[int, typer.Option(help="Least number of labels per stratum.")]
ConfidenceLevel = Annotated[float, typer.Option(help="Confidence level, between 0 and 1.")]
Target = Annotated[str, typer.Option(help="population or superpopulation.")]
Bounds = Annotated[str | None, typer.Option(help="Bounds of the outcome: LOW,HIGH.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Positive = Annotated[
    str | None, typer.Option(metavar="LABEL", help="The label that counts as 1, and every other as 0.")
]
Map = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="LABEL=NUMBER,…",
        help="What labels count as: a number, a class (kitty=cat), or no answer (unsure=).",
    ),
]
Combine = Annotated[
    str, typer.Option(help="What several annotators' answers of one unit become: mean or majority.")
]
Seed = Annotated[int, typer.Option(help="The same seed and ids draw the same units.")]


DRAWING_ORDER = (
    *("id", "proxy", "budget", "half_width", "estimand", "seed", "groups", "show", "predicted"),
    *("strata", "stratify", "by", "allocation", "minimum", "design", "size", "cluster"),
    *(
        "extend",
        "labels",
        "value",
        "positive",
        "additional",
        "learner",
        "confidence_level",
        "assume",
        "residual_sd",
    ),
    *("outcome", "bounds", "features", "proxy_bounds", "second_moment", "margin", "delimiter"),
    *("directory", "softmax", "missing", "label", "remote", "engine", "master", "threads", "memory"),
    *("progress", "population_size", "rate"),
)
"""How the options of planning and drawing follow each other in a help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a file of predictions is to be read.

    Examples
    --------
    >>> Reading(file=Path("p.csv"), groups="a, b", by="c").group_names
    ('a', 'b', 'c')
    """

    file: File
    id: Id = None
    proxy: Proxy = None
    groups: Groups = None
    by: By = None
    show: Show = None
    features: Features = None
    predicted: Predicted = None
    proxy_bounds: ProxyBounds = None
    second_moment: SecondMoment = None
    margin: Margin = False
    delimiter: Delimiter = None
    directory: Directory = False
    softmax: Softmax = None
    missing: Missing = "refuse"
    label: LabelKind = None
    remote: Remote = False
    engine: Engine = "duckdb"
    master: Master = None
    threads: Threads = None
    memory: Memory = None
    progress: Told = False

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups, with the one to stratify by."""
        names = listed(self.groups)
        return names if self.by is None or self.by in names else (*names, self.by)

    def population(self) -> Population:
        """Read the file."""
        from stratal.population import Population

        refuse_leading(self)
        return Population.read(
            self.file,
            id=self.id,
            proxy=listed(self.proxy) or None,
            groups=self.group_names,
            features=listed(self.features),
            show=listed(self.show),
            predicted=self.predicted,
            second_moment=self.second_moment,
            bounds=pair("--proxy-bounds", self.proxy_bounds),
            scaled=False if self.margin else None,
            softmax=listed(self.softmax) or None,
            missing=self.missing,
            label=self.label,
            **self.of_file,
        )

    @property
    def of_file(self) -> dict[str, Any]:
        """Where the file is and what reads it, whatever its columns."""
        names = ("delimiter", "directory", "remote", "engine", "master", "threads", "memory")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning(Reading):
    """What is to be planned, of which file.

    Examples
    --------
    >>> Planning(file=Path("p.csv"), budget=100).assume
    'cautious'
    """

    budget: Budget = None
    half_width: HalfWidth = None
    strata: StrataCount = None
    stratify: Stratify = None
    allocation: AllocationRule = None
    minimum: Minimum = 2
    confidence_level: ConfidenceLevel = 0.95
    assume: Assume = "cautious"
    residual_sd: ResidualSd = None
    estimand: EstimandText = None

    def with_columns_of_estimand(self) -> Reading:
        """Return how to read the file with the columns that the estimand names."""
        return with_columns_of(self, self.estimand)

    def plan(self, *, pilot: bool = False, earlier: tuple[list[Path], str, str | None] | None = None) -> Plan:
        """Read the population and plan, or plan the first round on the way to a half-width.

        `earlier` are files of labels, their column and the label that counts as 1.
        """
        from stratal.labels.label_file import read_labels
        from stratal.planning.planner import plan

        with progress("reading and stratifying"):
            population, labels = self.with_columns_of_estimand().population(), None
            if earlier is not None:
                paths, value, one = earlier
                labels = read_labels(*paths, id_name=population.id_name, value=value, positive=one)
            return plan(
                population,
                self.budget,
                half_width=self.half_width,
                method=self.stratify,
                n_strata=self.strata,
                by=self.by,
                allocation=self.allocation,
                minimum=self.minimum,
                confidence_level=self.confidence_level,
                assume=self.assume,
                pilot=pilot,
                residual_sd=self.residual_sd,
                estimand=self.estimand,
                labels=labels,
            )


def with_columns_of(reading: Reading, estimand: Any) -> Reading:
    """Return how to read a file with the columns that an estimand, or what names one, needs.

    Examples
    --------
    >>> with_columns_of(Reading(file=Path("p.csv")), "f1:match,probability=score").features
    'score'
    """
    from stratal.estimation.estimand import as_estimand

    if estimand is None:
        return reading
    asked = as_estimand(estimand)
    proxies = tuple(dict.fromkeys((*listed(reading.proxy), *asked.proxy_names)))
    known = (*proxies, *listed(reading.features))
    groups = [name for name in asked.groups if name not in known and name != reading.predicted]
    features = [name for name in asked.numbers if name not in known]
    return replace(
        reading,
        proxy=joined(*proxies) or None,
        groups=joined(*listed(reading.groups), *groups) or None,
        features=joined(*listed(reading.features), *features) or None,
    )


def part(kind: type[Chosen], record: Any) -> Chosen:
    """Return that part of a command's options that a record it inherits from has fields for.

    Examples
    --------
    >>> part(Reading, Planning(file=Path("p.csv"), id="key", budget=50)).id
    'key'
    """
    return kind(**{entry.name: getattr(record, entry.name) for entry in fields(kind)})  # type: ignore[arg-type]


def words(record: Any) -> list[str]:
    """Return the options of a record that differ from their defaults, to be typed again.

    Arguments, which have no name, are left out.

    Examples
    --------
    >>> words(Reading(file=Path("p.csv"), delimiter=";", margin=True))
    ['--margin', '--delimiter', ';']
    """
    found: list[str] = []
    hints = get_type_hints(type(record), include_extras=True)
    for entry in fields(record):
        value, (info,) = getattr(record, entry.name), hints[entry.name].__metadata__
        if value == entry.default or isinstance(info, ArgumentInfo):
            continue
        given = [info.default, *(info.param_decls or ()), "--" + entry.name.replace("_", "-")]
        option = next(name for name in given if str(name).startswith("--"))
        values = value if isinstance(value, list) else [value]
        for one in values:
            found += [option] if one is True else [option, str(one)]
    return found


def places(record: Any) -> list[str]:
    """Return the arguments `sample` and `labels` of a record, to be typed again.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> places(SimpleNamespace(sample=Path("audit"), labels=None))
    ['audit']
    """
    return [str(place) for place in (record.sample, *(record.labels or ())) if place is not None]


def refuse_leading(reading: Reading) -> None:
    """Refuse to show the annotators what would lead them, or a column that the label would overwrite.

    Examples
    --------
    >>> refuse_leading(Reading(file=Path("p.csv"), show="label"))
    Traceback (most recent call last):
    stratal.errors.InputError: --show: a shown column cannot be called 'label'...
    """
    shown = listed(reading.show)
    if "label" in shown:
        raise InputError(
            "--show: a shown column cannot be called 'label'",
            action="That is where the annotators' labels go; rename the column.",
        )
    leading = [name for name in shown if name in listed(reading.proxy) or name == reading.predicted]
    if leading:
        raise InputError(
            f"--show: '{leading[0]}' would lead the annotators",
            allowed="columns that are neither a proxy nor the model's answer",
            action="Show what a person needs to judge the unit.",
        )
