"""Options that several commands share, and the records that carry them to the library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from msgspec import Struct, structs

import stratal
from stratal.cli.command import Given, Needs, Option, argument, given
from stratal.cli.output import progress
from stratal.cli.parsing import joined, listed, mapping, meanings, pair, place, widths
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal import Plan, Population


Text = str | None
Whole = int | None
Number = float | None

Output = Annotated[Path, Option("Directory to write to; must be empty or not exist.")]
EstimandText = Annotated[
    Text,
    Option(
        "What the labels are for: f1:match, recall:match, difference:model_a,model_b, mean@language, …; "
        "several with semicolons between them, or the option once for each.",
        "NAME:OF",
        shown="the mean",
    ),
]
ConfidenceLevel = Annotated[float, Option("Confidence level, between 0 and 1.")]
Target = Annotated[str, Option("population or superpopulation.")]
Bounds = Annotated[
    Text, Option("Bounds of the outcome: LOW,HIGH.", needs="without --outcome binary or unbounded")
]
Seed = Annotated[int, Option("The same seed and ids draw the same units.")]

ON_DUCKDB = "with --engine duckdb"


def _is_text_table(given: Any) -> bool:
    suffixes = [suffix.lower() for suffix in given["file"].suffixes if suffix.lower() != ".gz"]
    return suffixes[-1:] not in ([".parquet"], [".pq"], [".jsonl"], [".ndjson"])


def _has_proxy(given: Given) -> bool:
    """Return whether a proxy is named; `doctor`, which has no budget, takes it from --predicts."""
    sources = ("proxy", "softmax", "answers", "history")
    return "budget" not in given or any(given.get(name) is not None for name in sources)


OF_PROXY = Needs("with --proxy, --softmax, --answers or --history", _has_proxy)


class RoleOptions(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Columns with a meaning of their own; the commands that take columns inherit these options.

    Parameters
    ----------
    predicted : str
        Column of the model's answer; kept in the sample, not shown.
    judge : COL,…
        Judges that are compared with the labels: columns of verdicts, kept in the sample and not shown, or
        proxies that are scores.
    """

    predicted: Text = None
    judge: Text = None

    @property
    def role_keywords(self) -> dict[str, Any]:
        """The columns by the keyword of their role."""
        from stratal.question import ROLES  # NumPy is not loaded for help

        texts = {role: getattr(self, role.keyword) for role in ROLES}
        return {role.keyword: listed(text) if role.several else text for role, text in texts.items()}

    @property
    def role_columns(self) -> tuple[str, ...]:
        """All columns that have a role."""
        from stratal.question import ROLES  # NumPy is not loaded for help

        return tuple(name for role in ROLES for name in listed(getattr(self, role.keyword)))


class Reading(RoleOptions, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a file of predictions is to be read.

    Parameters
    ----------
    id : str, default id or item_id
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
        Columns of numbers for --stratify features; also 'emb_*'.
    tags : FORMAT, default json if every answer is a list
        How answers and labels hold sets of tags: json, or the separator ';', '|' or ','; none if they do
        not.
    bounds : LOW,HIGH
        Bounds of the outcome, and of the proxy on its scale.
    margin : bool
        The proxy only orders units; it is on no scale.
    delimiter : str, default found in the header
        Delimiter of a CSV file.
    softmax : COL,… or PATTERN
        Columns of probabilities that add up to 1; the proxy is the answer's.
    missing : str
        Units without a proxy: refuse, or own-stratum to keep them as one of their own.
    predicts : COL=MEANING,…, default inferred from the values
        What a proxy predicts: right (the probability that the answer is right), class:NAME (that of a class),
        rating:LOW..HIGH, outcome (the outcome itself) or order (only an order).
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
    threads : int, default one for each core
        Threads that DuckDB may use.
    memory : AMOUNT, default a few hundred MB for each thread
        What DuckDB may hold before it spills to disk: 2GB.
    """

    file: Annotated[Path, argument("FILE", "Predictions: Parquet, CSV, JSON, Excel, Feather.", parser=place)]
    id: Text = None
    proxy: Text = None
    groups: Text = None
    by: Text = None
    show: Text = None
    features: Annotated[Text, Option(needs="with --stratify features")] = None
    tags: Annotated[Text, Option(needs="with --predicted or --answers")] = None
    bounds: Bounds = None
    margin: Annotated[bool, Option(needs="with --proxy")] = False
    delimiter: Annotated[Text, Option(needs=Needs("for a CSV file", _is_text_table))] = None
    softmax: Text = None
    missing: str = "refuse"
    predicts: Annotated[Text, Option(needs=OF_PROXY)] = None
    label: Text = None
    answers: Annotated[Text, Option(needs="with --predicted or --proxy or --softmax or --select")] = None
    history: Text = None
    remote: bool = False
    engine: str = "duckdb"
    threads: Annotated[Whole, Option(needs=ON_DUCKDB)] = None
    memory: Annotated[Text, Option(needs=ON_DUCKDB)] = None

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups, with the one to stratify by."""
        return tuple(dict.fromkeys((*listed(self.groups), *listed(self.by))))

    def population(self) -> Population:
        """Read the file."""
        leading = [name for name in listed(self.show) if name in (*listed(self.proxy), *self.role_columns)]
        if leading:
            action = "Show what a person needs to judge the unit: no proxy, verdict or answer of the model."
            raise InputError(f"--show: '{leading[0]}' would lead the annotators", action=action)
        texts = given(self, "proxy", "features", "show", "softmax", "answers")
        lists: dict[str, Any] = {name: listed(text) for name, text in texts.items() if text}
        return stratal.Population.read(
            self.file,
            groups=self.group_names,
            bounds=pair("--bounds", self.bounds) if self.proxy or self.softmax else None,
            scaled=False if self.margin else None,
            predicts=meanings(self.predicts),
            **lists,
            **self.role_keywords,
            **given(self, "id", "missing", "label", "history", "tags"),
            **self.of_file,
        )

    @property
    def of_file(self) -> dict[str, Any]:
        """Where the file is and what reads it, whatever its columns."""
        engine, _, master = self.engine.partition("=")
        # The folder of a draw holds a sample, and is no data set.
        parts = self.file.is_dir() and not (self.file / "to_label.csv").exists()
        parts = parts and next(self.file.rglob("*.parquet"), None) is not None
        found = given(self, "delimiter", "remote", "threads", "memory")
        return found | {"engine": engine, "master": master or None, "directory": parts}

    def with_columns_of(self, estimand: Any) -> Self:
        """Return how to read the file with the columns that an estimand, or what names one, needs."""
        from stratal.estimation import as_estimand

        if estimand is None:
            return self
        wanted = as_estimand(estimand)
        proxies = (*listed(self.proxy), *wanted.proxy_names)
        known = (*proxies, *listed(self.features))
        groups = (name for name in wanted.groups if name not in (*known, *self.role_columns))
        features = (name for name in wanted.numbers if name not in known)
        return structs.replace(
            self,
            proxy=joined(*proxies) or None,
            groups=joined(*listed(self.groups), *groups) or None,
            features=joined(*listed(self.features), *features) or None,
        )


STRATIFIED = "without --stratify none"
COLUMN_TO_DIVIDE = "with --proxy, --by or --features"
HALF_OF_BUDGET = Needs(
    "up to half of --budget, for at least two strata",
    lambda given: given["budget"] is None or 2 * given["minimum"] <= given["budget"],
)


class Planning(Reading, frozen=True, kw_only=True):
    """What is to be planned, of which file.

    Parameters
    ----------
    budget : int
        Labels that can be bought.
    half_width : WIDTH,…
        Half-width of the interval that is wanted, instead of a budget; one for each of several estimands,
        or one for all.
    strata : int, default 10, fewer below 50 labels
        Number of strata.
    stratify : str, default k-means; neyman with --estimand
        k-means, neyman, equal-size, equal-width, cum-sqrt-f, cum-cbrt-f, weighted-mean, gaussian-mixture,
        features, category or none.
    allocation : str, default robust; neyman with --estimand
        robust, proportional, equal, neyman, power, stratppi, or cost-optimal:COL with a column of what each
        label costs; --budget is then money.
    minimum : int
        Least number of labels per stratum.
    assume : str
        What --half-width assumes of the proxy: conservative, expected or optimistic.
    residual_sd : float, default half the proxy's own
        Standard deviation of outcome less proxy, for outcomes without bounds.
    outcome : str, default as the proxy's bounds or the model's answers tell
        What the labels will be: binary, bounded (with --bounds) or unbounded; kept in the sample.
    looks : NUMBER
        Looks at the labels, at each of which labelling may stop: 4, or obrien-fleming:4; estimate --look.
    positive : LABEL
        The label that counts as 1, and every other as 0.
    map : LABEL=NUMBER,…
        What labels will count as, kept in the sample: a number, a class (kitty=cat), or no answer (unsure=).
    compare : COL,…
        Columns of the labels in which the outcomes of several models will be.
    target : str, default population; superpopulation if all is labelled
        What the interval is about: population or superpopulation.
    for_ : threshold:REQUIREMENT
        Plan for what `threshold` is to guarantee, instead of an estimand: threshold:'error<=.05'.
    """

    budget: Whole = None
    half_width: Annotated[float | tuple[float, ...] | None, Option(parser=widths)] = None
    strata: Annotated[
        Whole, Option(needs=("with --proxy or --features", "without --stratify none or category"))
    ] = None
    stratify: Annotated[Text, Option(needs=COLUMN_TO_DIVIDE)] = None
    allocation: Annotated[Text, Option(needs=(COLUMN_TO_DIVIDE, STRATIFIED))] = None
    minimum: Annotated[int, Option(needs=(COLUMN_TO_DIVIDE, STRATIFIED, HALF_OF_BUDGET))] = 2
    confidence_level: ConfidenceLevel = 0.95
    assume: Annotated[str, Option(needs="with --half-width")] = "conservative"
    residual_sd: Number = None
    estimand: EstimandText = None
    looks: Text = None
    outcome: Text = None
    positive: Text = None
    map: Text = None
    compare: Text = None
    target: Text = None
    for_: Annotated[Text, Option(needs="without --estimand or --half-width")] = None

    def plan(self, *, pilot: bool = False, **learned: Any) -> Plan:
        """Read the population and plan, or plan the first round on the way to a half-width.

        `learned` is what `stratal.plan` takes of earlier labels.
        """
        names = ("half_width", "by", "allocation", "minimum", "confidence_level", "assume")
        with progress("reading and stratifying"):
            return stratal.plan(
                self.for_planning.population(),
                self.budget,
                method=self.stratify,
                n_strata=self.strata,
                pilot=pilot,
                **given(self, *names, "residual_sd", "estimand", "looks", "for_"),
                **learned,
            )

    @property
    def for_planning(self) -> Planning:
        """How to read the file with the columns that the estimand and the allocation need."""
        found = self.with_columns_of(self.goal)
        cost = (self.allocation or "").partition(":")[2]
        return structs.replace(found, features=joined(*listed(found.features), *listed(cost)) or None)

    @property
    def goal(self) -> Any:
        """The text of what is planned for: an estimand, or what a threshold is to guarantee."""
        from stratal.estimation import planned_for  # NumPy is not loaded for help

        return planned_for(self.estimand, self.for_)

    @property
    def counted(self) -> dict[str, Any]:
        """What labels count as."""
        return {"positive": self.positive, "mapping": mapping("--map", self.map)}
