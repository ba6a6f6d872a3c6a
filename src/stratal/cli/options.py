"""Options that several commands share, and records that pass them to the library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from msgspec import Struct, structs

import stratal
from stratal.cli.command import Option, argument, selected_fields
from stratal.cli.conditions import ValueCondition, Values, with_any, without_all
from stratal.cli.output import show_progress
from stratal.cli.parsing import (
    join_names,
    parse_mapping,
    parse_meanings,
    parse_pair,
    parse_path,
    parse_widths,
)
from stratal.names import split_names
from stratal.protocols import Keywords

if TYPE_CHECKING:
    from stratal import Plan, Population


# Types of options that may be missing.
Text = str | None
Whole = int | None
Number = float | None

Output = Annotated[Path, Option("Directory to write to; it must be empty or must not exist yet.")]
EstimandText = Annotated[
    Text,
    Option(
        "Quantity to estimate: f1:match, recall:match, difference:model_a,model_b, mean@language, …; "
        "several are separated by semicolons, or the option is repeated.",
        "NAME:OF",
        default_text="the mean",
    ),
]
ConfidenceLevel = Annotated[float, Option("Confidence level, between 0 and 1.")]
Target = Annotated[
    str,
    Option("Target of the interval: population (these units) or superpopulation (all future units)."),
]
Bounds = Annotated[
    Text, Option("Bounds of the outcome: LOW,HIGH.", needs=(without_all(outcome=("binary", "unbounded")),))
]
Seed = Annotated[int, Option("Seed of the random numbers; the same seed and ids draw the same units.")]

# Conditions under which options have an effect.
ON_DUCKDB = with_any(engine=("duckdb",))


def _is_text_table(values: Values) -> bool:
    """Return whether the file may have delimiters."""
    # The file of a further round is named in its plan.
    if values["file"] is None:
        return True
    suffixes = [suffix.lower() for suffix in values["file"].suffixes if suffix.lower() != ".gz"]
    return suffixes[-1:] not in ([".parquet"], [".pq"], [".jsonl"], [".ndjson"])


def _has_proxy(values: Values) -> bool:
    """Return whether an option names a proxy."""
    # `doctor`, the only command without a budget, takes the proxy from --predicts.
    sources = ("proxy", "softmax", "answers", "history")
    return "budget" not in values or any(values.get(name) is not None for name in sources)


OF_PROXY = ValueCondition("with --proxy, --softmax, --answers or --history", _has_proxy)


class RoleOptions(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Options that name columns with a role.

    Parameters
    ----------
    predicted : str
        Column of the model's answer. It is stored in the sample and not shown to annotators.
    judge : COL,…
        Judges to compare with the labels: columns of verdicts (stored in the sample, not shown to annotators)
        or proxies that are scores.
    """

    predicted: Text = None
    judge: Text = None

    @property
    def role_keywords(self) -> Keywords:
        """The columns by the keyword of their role."""
        from stratal.question import ROLES  # NumPy is not loaded for help

        keywords: Keywords = {}
        for role in ROLES:
            text = getattr(self, role.keyword)
            keywords[role.keyword] = split_names(text) if role.several else text
        return keywords

    @property
    def role_columns(self) -> tuple[str, ...]:
        """All columns that have a role."""
        from stratal.question import ROLES  # NumPy is not loaded for help

        texts = selected_fields(self, *(role.keyword for role in ROLES))
        return tuple(name for text in texts.values() for name in split_names(text))


class Reading(RoleOptions, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Options to read a file of predictions.

    Parameters
    ----------
    id : str, default id or item_id
        Column of unique ids, or row for row numbers.
    proxy : COL,…
        Columns with scores that predict the outcome, such as a confidence.
    groups : COL,…
        Columns of categories by which results may be reported.
    by : str
        Column of categories to stratify by.
    show : COL,…
        Columns shown to the annotators.
    features : COL,…
        Columns of numbers for --stratify features, or a pattern such as 'emb_*'.
    tags : FORMAT, default json if every answer is a list
        Format of sets of tags in answers and labels: json, or the separator ';', '|' or ','; none if values
        are not sets.
    bounds : LOW,HIGH
        Bounds of the outcome, and of a proxy on the same scale.
    margin : bool
        Use only the order of the proxy's values, not their scale.
    delimiter : str, default detected in the header
        Delimiter of a CSV file.
    softmax : COL,… or PATTERN
        Columns of class probabilities that add up to 1; the proxy is the probability of the answer.
    missing : str
        What to do with units without a proxy: refuse (an error) or own-stratum (put them into a separate
        stratum).
    predicts : COL=MEANING,…, default inferred from the values
        What a proxy predicts: right (probability that the answer is right), class:NAME (probability of a
        class), rating:LOW..HIGH, outcome (the outcome itself) or order (only the order of units).
    label : KIND
        Kind of labels, if the proxy is on another scale: pass/fail or LOW,HIGH.
    answers : COL,… or PATTERN
        Columns of other models' answers; the proxy is the share of them that equal --predicted.
    history : FILE
        File with the results of earlier models by item: a column per model, or a column model and a row per
        model. The proxy is predicted from them and fitted again when labels arrive.
    remote : bool
        Allow FILE to be an address (https://… or s3://…).
    engine : str
        Engine that reads FILE: duckdb, spark, or spark=URL for a cluster (spark=spark://host:7077).
    threads : int, default one for each core
        Number of threads of DuckDB.
    memory : AMOUNT, default a few hundred MB for each thread
        Memory limit of DuckDB, such as 2GB; beyond it, DuckDB uses the disk.
    """

    file: Annotated[
        Path, argument("FILE", "Predictions: Parquet, CSV, JSON, Excel, Feather.", parser=parse_path)
    ]
    id: Text = None
    proxy: Text = None
    groups: Text = None
    by: Text = None
    show: Text = None
    features: Annotated[Text, Option(needs=(with_any(stratify=("features",)),))] = None
    tags: Annotated[Text, Option(needs=(with_any("predicted", "answers"),))] = None
    bounds: Bounds = None
    margin: Annotated[bool, Option(needs=(with_any("proxy"),))] = False
    delimiter: Annotated[Text, Option(needs=(ValueCondition("for a CSV file", _is_text_table),))] = None
    softmax: Text = None
    missing: str = "refuse"
    predicts: Annotated[Text, Option(needs=(OF_PROXY,))] = None
    label: Text = None
    answers: Annotated[Text, Option(needs=(with_any("predicted", "proxy", "softmax", "select"),))] = None
    history: Text = None
    remote: bool = False
    engine: str = "duckdb"
    threads: Annotated[Whole, Option(needs=(ON_DUCKDB,))] = None
    memory: Annotated[Text, Option(needs=(ON_DUCKDB,))] = None

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups, with the one to stratify by."""
        return tuple(dict.fromkeys((*split_names(self.groups), *split_names(self.by))))

    @property
    def content_columns(self) -> list[str]:
        """Columns of a local CSV or Parquet file with texts or images for annotators; empty with --show."""
        from stratal.question.content import content_columns
        from stratal.question.scores import ANSWER_IS_RIGHT
        from stratal.tables.files import csv_header
        from stratal.tables.parquet import parquet_column_names

        if self.show or not self.file.is_file():
            return []
        suffix = self.file.suffix.lower()
        names: list[str] = []
        if suffix in (".csv", ".tsv"):
            names = csv_header(self.file, self.delimiter)[2] or []
        elif suffix == ".parquet":
            names = parquet_column_names(self.file, sys.maxsize)
        texts = selected_fields(self, "id", "proxy", "groups", "by", "features", "softmax", "answers")
        used = {name for text in texts.values() for name in split_names(text)}
        declared_meanings = parse_meanings(self.predicts)
        # Annotators who judge whether the answer is right must see it.
        if isinstance(declared_meanings, dict):
            shows_answers = ANSWER_IS_RIGHT in declared_meanings.values()
        else:
            shows_answers = declared_meanings == ANSWER_IS_RIGHT
        return content_columns(names, {*used, *self.role_columns}, with_answers=shows_answers)

    def population(self) -> Population:
        """Read the file."""
        texts = selected_fields(self, "proxy", "features", "show", "softmax", "answers")
        lists: Keywords = {name: split_names(text) for name, text in texts.items() if text}
        return stratal.Population.read(
            self.file,
            groups=self.group_names,
            bounds=parse_pair("--bounds", self.bounds) if self.proxy or self.softmax else None,
            scaled=False if self.margin else None,
            predicts=parse_meanings(self.predicts),
            missing=None if self.missing == "refuse" else self.missing,
            **lists,
            **self.role_keywords,
            **selected_fields(self, "id", "label", "history", "tags"),
            **self.source_keywords,
        )

    @property
    def source_keywords(self) -> Keywords:
        """The keywords of `Population.read` for the file as a whole: location, format and engine."""
        engine, _, master = self.engine.partition("=")
        # `draw` writes Parquet files, too, to a folder with to_label.csv, which is not a data set.
        is_dataset = (
            self.file.is_dir()
            and not (self.file / "to_label.csv").exists()
            and next(self.file.rglob("*.parquet"), None) is not None
        )
        options = selected_fields(self, "delimiter", "remote", "threads", "memory")
        return options | {"engine": engine, "master": master or None, "directory": is_dataset}

    def with_columns_of(self, estimand: Any) -> Self:
        """Return the options with the columns that an estimand needs."""
        from stratal.estimation import as_estimand

        if estimand is None:
            return self
        requested = as_estimand(estimand)
        proxies = (*split_names(self.proxy), *requested.proxy_names)
        numbers = (*proxies, *split_names(self.features))
        # Columns that another option reads already are not read twice.
        groups = (name for name in requested.groups if name not in (*numbers, *self.role_columns))
        features = (name for name in requested.numeric_columns if name not in numbers)
        return structs.replace(
            self,
            proxy=join_names(*proxies) or None,
            groups=join_names(*split_names(self.groups), *groups) or None,
            features=join_names(*split_names(self.features), *features) or None,
        )


STRATIFIED = without_all(stratify=("none",))
STRATIFICATION_COLUMN = with_any("proxy", "by", "features")
HALF_OF_BUDGET = ValueCondition(
    "up to half of --budget, for at least two strata",
    lambda values: values["budget"] is None or 2 * values["minimum"] <= values["budget"],
)


class Planning(Reading, frozen=True, kw_only=True):
    """Options of a plan, and how to read its file.

    Parameters
    ----------
    budget : int
        Labelling budget (number of labels).
    half_width : WIDTH,…
        Target half-width of the interval, instead of --budget. For several estimands, give one value for each
        or one value for all.
    strata : int, default up to 10, or 15 from 200 labels, with 5 or more labels per stratum
        Number of strata; with --by, the number within each category.
    stratify : str, default robust-neyman; k-means for scores without a scale; neyman with --estimand
        robust-neyman, k-means, neyman, equal-size, equal-width, cum-sqrt-f, cum-cbrt-f, weighted-mean,
        gaussian-mixture, features, category or none.
    allocation : str, default robust; neyman with --estimand
        robust, proportional, equal, neyman, power, stratppi, or cost-optimal:COL with a column of costs per
        label; --budget is then the total cost.
    minimum : int
        Minimum number of labels per stratum.
    assume : str
        Assumed quality of the proxy for --half-width: conservative, expected or optimistic.
    residual_sd : float, default half the proxy's standard deviation
        Standard deviation of outcome minus proxy, for outcomes without bounds.
    outcome : str, default inferred from the proxy's bounds or the model's answers
        Kind of outcome: binary, bounded (with --bounds) or unbounded. It is stored in the sample.
    looks : NUMBER
        Number of interim analyses after which labelling may stop, such as 4 or obrien-fleming:4; see estimate
        --look.
    positive : LABEL
        Label that counts as 1; all other labels count as 0.
    map : LABEL=NUMBER,…
        Values of labels: a number (pass=1), a class (kitty=cat) or no answer (unsure=). They are stored in
        the sample.
    compare : COL,…
        Columns of the labels that will contain the outcomes of several models.
    target : str, default population; superpopulation if all units are labelled
        Target of the interval: population (these units) or superpopulation (all future units).
    previous : WAVE…
        Earlier waves, whose labels inform strata and allocation: folders that `draw` wrote, with the labels
        in their to_label.csv, in chronological order.
    for_ : threshold:REQUIREMENT
        Plan for a requirement of `stratal threshold` instead of an estimand, such as threshold:'error<=.05'.
    """

    budget: Whole = None
    half_width: Annotated[float | tuple[float, ...] | None, Option(parser=parse_widths)] = None
    strata: Annotated[
        Whole, Option(needs=(with_any("proxy", "features"), without_all(stratify=("none", "category"))))
    ] = None
    stratify: Annotated[Text, Option(needs=(STRATIFICATION_COLUMN,))] = None
    allocation: Annotated[Text, Option(needs=(STRATIFICATION_COLUMN, STRATIFIED))] = None
    minimum: Annotated[int, Option(needs=(STRATIFICATION_COLUMN, STRATIFIED, HALF_OF_BUDGET))] = 2
    confidence_level: ConfidenceLevel = 0.95
    assume: Annotated[str, Option(needs=(with_any("half_width"),))] = "conservative"
    residual_sd: Number = None
    estimand: EstimandText = None
    looks: Text = None
    outcome: Text = None
    positive: Text = None
    map: Text = None
    compare: Text = None
    target: Text = None
    previous: Annotated[
        list[Path] | None,
        Option(
            several=True,
            needs=(
                with_any("proxy", "softmax", "answers", "history"),
                without_all("strata", "stratify", "by", "allocation", "estimand", "labels"),
            ),
        ),
    ] = None
    for_: Annotated[Text, Option(needs=(without_all("estimand", "half_width"),))] = None

    def plan(self, *, pilot: bool = False, **label_options: Any) -> Plan:
        """Read the population and plan, or plan a pilot for a half-width.

        `label_options` are the options of `stratal.plan` for existing labels.
        """
        names = ("half_width", "by", "allocation", "minimum", "confidence_level", "assume")
        with show_progress("reading and stratifying"):
            return stratal.plan(
                self.with_required_columns.population(),
                self.budget,
                method=self.stratify,
                n_strata=self.strata,
                pilot=pilot,
                **selected_fields(self, *names, "residual_sd", "estimand", "looks", "for_", "previous"),
                **label_options,
            )

    @property
    def with_required_columns(self) -> Planning:
        """The options with the columns that the estimand and the allocation need."""
        options = self.with_columns_of(self.goal)
        cost = (self.allocation or "").partition(":")[2]
        return structs.replace(
            options, features=join_names(*split_names(options.features), *split_names(cost)) or None
        )

    @property
    def goal(self) -> Any:
        """The text of the estimand or, with --for, of the guarantee of a threshold."""
        from stratal.estimation import planned_for  # NumPy is not loaded for help

        return planned_for(self.estimand, self.for_)

    @property
    def label_values(self) -> Keywords:
        """The keywords of `read_labels` and `evaluate` that convert labels to numbers or classes."""
        return {"positive": self.positive, "mapping": parse_mapping("--map", self.map)}
