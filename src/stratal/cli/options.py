"""Options that several commands share, and the records that carry them to the library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from msgspec import Struct, structs

from stratal.cli.command import Needs, argument, option
from stratal.cli.output import progress
from stratal.cli.parsing import joined, listed, mapping, pair, place, widths
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.planning.plan import Plan
    from stratal.population import Population


Text = str | None
Whole = int | None
Number = float | None
AnyReading = TypeVar("AnyReading", bound="Reading")
AnyPlanning = TypeVar("AnyPlanning", bound="Planning")

COLUMNS = "COL,…"

Study = Annotated[Path, argument("STUDY", "The folder that `study new` made.")]
Output = Annotated[Path, option("Directory to write to; must be empty or not exist.")]
EstimandText = Annotated[
    Text,
    option(
        "What the labels are for: f1:match, recall:match, difference:model_a,model_b, mean@language, …; "
        "several with semicolons between them, or the option once for each.",
        "NAME:OF",
        shown="the mean",
    ),
]
ConfidenceLevel = Annotated[float, option("Confidence level, between 0 and 1.")]
Target = Annotated[str, option("population or superpopulation.")]
Bounds = Annotated[
    Text, option("Bounds of the outcome: LOW,HIGH.", needs="without --outcome binary or unbounded")
]
Positive = Annotated[Text, option("The label that counts as 1, and every other as 0.", "LABEL")]
Seed = Annotated[int, option("The same seed and ids draw the same units.")]

ON_DUCKDB = "with --engine duckdb"


def _is_text_table(given: Any) -> bool:
    suffixes = [suffix.lower() for suffix in given["file"].suffixes if suffix.lower() != ".gz"]
    return suffixes[-1:] not in ([".parquet"], [".pq"], [".jsonl"], [".ndjson"])


class Reading(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a file of predictions is to be read.

    Parameters
    ----------
    id : str
        Column of unique ids; row for the number of the row.
    proxy : COL,…
        Column(s) that predict the outcome.
    groups : COL,…
        Columns of categories.
    by : str
        Column of categories to stratify by.
    show : COL,…
        Columns shown to the annotators.
    features : COL,…
        Columns of numbers for --stratify features or --calibration; also 'emb_*'.
    predicted : str
        Column of the model's answer; kept in the sample, not shown.
    bounds : LOW,HIGH
        Bounds of the outcome, and of the proxy on its scale.
    second_moment : str
        Column of E[z² | x], where the proxy has one.
    margin : bool
        The proxy only orders units; it has no scale.
    delimiter : str
        Delimiter of a CSV file.
    softmax : COL,… or PATTERN
        Columns of probabilities that add up to 1; the proxy is the answer's.
    missing : str
        Units without a proxy: refuse, or own-stratum to keep them as one of their own.
    label : KIND
        What annotators will say, where the proxy is on another scale: pass/fail or LOW,HIGH.
    answers : COL,… or PATTERN
        Other models' answers; the proxy is how many agree with --predicted.
    history : FILE
        Earlier models' results by item: a column for each model, or rows with a column model; what they
        predict is the proxy, learned anew from labels.
    remote : bool
        FILE may be an address: https://… or s3://….
    engine : str
        What reads FILE: duckdb, spark, or spark=URL where that is elsewhere: spark=spark://host:7077.
    threads : int
        Threads that DuckDB may use.
    memory : AMOUNT
        What DuckDB may hold before it spills to disk: 2GB.

    Examples
    --------
    >>> Reading(file=Path("p.csv"), groups="a, b", by="c").group_names
    ('a', 'b', 'c')
    """

    file: Annotated[Path, argument("FILE", "Predictions: Parquet, CSV, JSON, Excel, Feather.", parser=place)]
    id: Annotated[Text, option(shown="id or item_id")] = None
    proxy: Text = None
    groups: Text = None
    by: Text = None
    show: Text = None
    features: Annotated[Text, option(needs="with --stratify features or --calibration")] = None
    predicted: Text = None
    bounds: Bounds = None
    second_moment: Annotated[Text, option(needs="with --proxy")] = None
    margin: Annotated[bool, option(needs="with --proxy")] = False
    delimiter: Annotated[
        Text, option(shown="found in the header", needs=Needs("for a CSV file", _is_text_table))
    ] = None
    softmax: Text = None
    missing: str = "refuse"
    label: Text = None
    answers: Annotated[Text, option(needs="with --predicted or --proxy or --softmax or --select")] = None
    history: Text = None
    remote: bool = False
    engine: str = "duckdb"
    threads: Annotated[Whole, option(shown="one for each core", needs=ON_DUCKDB)] = None
    memory: Annotated[Text, option(shown="a few hundred MB for each thread", needs=ON_DUCKDB)] = None

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups, with the one to stratify by."""
        return tuple(dict.fromkeys((*listed(self.groups), *([] if self.by is None else [self.by]))))

    def population(self) -> Population:
        """Read the file."""
        from stratal.population import Population

        self._refuse_leading()
        return Population.read(
            self.file,
            id=self.id,
            proxy=listed(self.proxy) or None,
            groups=self.group_names,
            features=listed(self.features),
            show=listed(self.show),
            predicted=self.predicted,
            second_moment=self.second_moment,
            bounds=pair("--bounds", self.bounds) if self.proxy or self.softmax else None,
            scaled=False if self.margin else None,
            softmax=listed(self.softmax) or None,
            missing=self.missing,
            label=self.label,
            answers=listed(self.answers) or None,
            history=self.history,
            **self.of_file,
        )

    @property
    def of_file(self) -> dict[str, Any]:
        """Where the file is and what reads it, whatever its columns."""
        engine, _, master = self.engine.partition("=")
        # The folder of a draw holds a sample, and is no data set.
        parts = self.file.is_dir() and not (self.file / "to_label.csv").exists()
        parts = parts and next(self.file.rglob("*.parquet"), None) is not None
        found = {name: getattr(self, name) for name in ("delimiter", "remote", "threads", "memory")}
        return found | {"engine": engine, "master": master or None, "directory": parts}

    def with_columns_of(self: AnyReading, estimand: Any) -> AnyReading:
        """Return how to read the file with the columns that an estimand, or what names one, needs.

        Examples
        --------
        >>> Reading(file=Path("p.csv")).with_columns_of("f1:match,probability=score").features
        'score'
        """
        from stratal.estimation.estimand import as_estimand

        if estimand is None:
            return self
        wanted = as_estimand(estimand)
        proxies = (*listed(self.proxy), *wanted.proxy_names)
        known = (*proxies, *listed(self.features))
        groups = (name for name in wanted.groups if name not in known and name != self.predicted)
        features = (name for name in wanted.numbers if name not in known)
        return structs.replace(
            self,
            proxy=joined(*proxies) or None,
            groups=joined(*listed(self.groups), *groups) or None,
            features=joined(*listed(self.features), *features) or None,
        )

    def _refuse_leading(self) -> None:
        """Refuse to show the annotators what would lead them, or a column that the label would overwrite."""
        shown = listed(self.show)
        if "label" in shown:
            raise InputError(
                "--show: a shown column cannot be called 'label'",
                action="That is where the annotators' labels go; rename the column.",
            )
        leading = [name for name in shown if name in listed(self.proxy) or name == self.predicted]
        if leading:
            raise InputError(
                f"--show: '{leading[0]}' would lead the annotators",
                allowed="columns that are neither a proxy nor the model's answer",
                action="Show what a person needs to judge the unit.",
            )


STRATIFIED = "without --stratify none"
COLUMN_TO_DIVIDE = "with --proxy, --by or --features"


class Planning(Reading, frozen=True, kw_only=True):
    """What is to be planned, of which file.

    Parameters
    ----------
    budget : int
        Labels that can be bought.
    half_width : WIDTH,…
        Half-width of the interval that is wanted, instead of a budget; one for each of several estimands,
        or one for all.
    strata : int
        Number of strata.
    stratify : str
        k-means, neyman, equal-size, equal-width, cum-sqrt-f, cum-cbrt-f, weighted-mean, gaussian-mixture,
        features, category or none.
    allocation : str
        robust, proportional, equal, neyman, power, stratppi, or cost-optimal:COL with a column of what each
        label costs; --budget is then money.
    minimum : int
        Least number of labels per stratum.
    assume : str
        What --half-width assumes of the proxy: conservative, expected or optimistic.
    residual_sd : float
        Standard deviation of outcome less proxy, for outcomes without bounds.
    outcome : str
        What the labels will be: binary, bounded (with --bounds) or unbounded; kept in the sample.
    looks : NUMBER
        Looks at the labels, at each of which labelling may stop: 4, or obrien-fleming:4; estimate --look.
    map : LABEL=NUMBER,…
        What labels will count as, kept in the sample: a number, a class (kitty=cat), or no answer (unsure=).

    Examples
    --------
    >>> Planning(file=Path("p.csv"), budget=100).assume
    'conservative'
    """

    budget: Whole = None
    half_width: Annotated[float | tuple[float, ...] | None, option(parser=widths)] = None
    strata: Annotated[
        Whole,
        option(
            shown="10, fewer below 50 labels",
            needs=("with --proxy or --features", "without --stratify none or category"),
        ),
    ] = None
    stratify: Annotated[Text, option(shown="k-means; neyman with --estimand", needs=COLUMN_TO_DIVIDE)] = None
    allocation: Annotated[
        Text, option(shown="robust; neyman with --estimand", needs=(COLUMN_TO_DIVIDE, STRATIFIED))
    ] = None
    minimum: Annotated[
        int,
        option(
            needs=(
                COLUMN_TO_DIVIDE,
                STRATIFIED,
                Needs(
                    "up to half of --budget, for at least two strata",
                    lambda given: given["budget"] is None or 2 * given["minimum"] <= given["budget"],
                ),
            )
        ),
    ] = 2
    confidence_level: ConfidenceLevel = 0.95
    assume: Annotated[str, option(needs="with --half-width")] = "conservative"
    residual_sd: Annotated[Number, option(shown="half the proxy's own")] = None
    estimand: EstimandText = None
    looks: Text = None
    outcome: Annotated[Text, option(shown="as the proxy's bounds or the model's answers tell")] = None
    positive: Positive = None
    map: Text = None

    def plan(self, *, pilot: bool = False, **learned: Any) -> Plan:
        """Read the population and plan, or plan the first round on the way to a half-width.

        `learned` is what `stratal.plan` takes of earlier labels.
        """
        from stratal.planning.planner import plan

        with progress("reading and stratifying"):
            return plan(
                self.for_planning.population(),
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
                **learned,
                looks=self.looks,
            )

    @property
    def for_planning(self: AnyPlanning) -> AnyPlanning:
        """How to read the file with the columns that the estimand and the allocation need."""
        found = self.with_columns_of(self.estimand)
        _, _, cost = (self.allocation or "").partition(":")
        if not cost or cost in listed(found.features):
            return found
        return structs.replace(found, features=joined(*listed(found.features), cost))

    @property
    def counted(self) -> dict[str, Any]:
        """What labels count as."""
        return {"positive": self.positive, "mapping": mapping("--map", self.map)}


def places(record: Any) -> list[str]:
    """Return the arguments `sample` and `labels` of a record, to be typed again."""
    return [str(place) for place in (record.sample, *(record.labels or ())) if place is not None]
