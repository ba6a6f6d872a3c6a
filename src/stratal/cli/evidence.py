"""What `estimate` and `report` are asked, and the sample and labels that they find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from stratal.cli import options as o
from stratal.errors import InputError, LabelError

if TYPE_CHECKING:
    from stratal.designs.sample import Sample
    from stratal.labels.labels import Labels

LABEL = "label"
"""Column of the labels, unless said otherwise."""

KNOWN = (
    *("id", "stratum", "sizes", "cluster", "weight", "population", "population_size"),
    *("proxy", "proxy_moments", "predicted"),
)
"""Options that say what is known of a sample that was drawn elsewhere."""

Column: TypeAlias = "Callable[[str], Labels]"
"""What reads a column of the labels by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceOptions:
    """The options of `estimate`.

    Examples
    --------
    >>> EvidenceOptions(compare="a,b").answered
    'a'
    """

    sample: Annotated[
        Path | None,
        typer.Argument(metavar="SAMPLE", help="The sample file that `draw` wrote, or a study's folder."),
    ] = None
    labels: Annotated[
        list[Path] | None,
        typer.Argument(metavar="LABELS…", help="Labels, joined by id: CSV, Excel, JSON, Parquet, Feather."),
    ] = None
    value: Annotated[str, typer.Option("--value", "--label", help="Column of the label.")] = LABEL
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Column of ids in LABELS; row for rows in the order of to_label.csv.",
            show_default="the sample's",
        ),
    ] = None
    positive: o.Positive = None
    map: o.Map = None
    combine: o.Combine = "mean"
    predicted: Annotated[
        str | None,
        typer.Option(
            help="Labels are classes: compare with this column of answers, kept by draw or in LABELS."
        ),
    ] = None
    estimand: o.EstimandText = None
    estimator: Annotated[
        str,
        typer.Option(help="auto, horvitz-thompson, difference, ppi++, stratppi, hajek or post-stratified."),
    ] = "auto"
    post_stratify: Annotated[
        str | None,
        typer.Option(metavar="GROUP", help="Weigh the sample by this group, whose sizes the draw kept."),
    ] = None
    margins: Annotated[
        str | None,
        typer.Option(
            metavar="COL,…", help="Fit the weights to these groups' sizes and proxies' means, any design."
        ),
    ] = None
    margins_by: Annotated[
        str, typer.Option(help="With --margins: raking (positive weights) or regression.")
    ] = "raking"
    lam: Annotated[float | None, typer.Option(help="λ given instead of fitted.")] = None
    cross_fit: Annotated[
        int | None, typer.Option(metavar="FOLDS", help="Fit each unit's λ on the other folds' labels.")
    ] = None
    calibration: Annotated[
        str | None,
        typer.Option(
            help="Calibrate the proxy on the labels, cross-fitted: isotonic or logistic; or learn from "
            "several columns: gradient-boosting, logistic-regression or ridge."
        ),
    ] = None
    features: Annotated[
        str | None,
        typer.Option(
            metavar="COL,…",
            help="With a learner: columns of --population to learn from; also 'judge_*'.",
            show_default="the sample's proxies",
        ),
    ] = None
    population: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --labelled: all units, or the others, with the proxy. With --calibration, or for a "
            "coefficient: what the sample was drawn from.",
        ),
    ] = None
    target: o.Target = "population"
    outcome: Annotated[
        str | None, typer.Option(help="binary, bounded or unbounded; inferred where that is safe.")
    ] = None
    bounds: o.Bounds = None
    winsorise: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH", help="Estimate the mean with values beyond these limits at the limits."
        ),
    ] = None
    confidence_level: o.ConfidenceLevel = 0.95
    interval: Annotated[str, typer.Option(help="auto, or a method of the documentation's table.")] = "auto"
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Classification metrics: accuracy,precision,recall,f1."),
    ] = None
    class_: Annotated[str | None, typer.Option("--class", metavar="NAME,…", help="Classes to report.")] = None
    compare: Annotated[
        str | None, typer.Option(metavar="COL,…", help="Columns of LABELS with models' outcomes.")
    ] = None
    model: Annotated[
        str | None,
        typer.Option(help="LABELS are long, one row per unit and model: column of the models' names."),
    ] = None
    by: Annotated[str | None, typer.Option(help="Group to report on, one estimate for each level.")] = None
    labelled: Annotated[
        Path | None, typer.Option(help="Units drawn and labelled elsewhere, instead of SAMPLE and LABELS.")
    ] = None
    stratum: Annotated[str | None, typer.Option(help="With --labelled: column of strata.")] = None
    sizes: Annotated[Path | None, typer.Option(help="With --labelled: file with columns stratum,size.")] = (
        None
    )
    cluster: Annotated[
        str | None, typer.Option(help="With --labelled: column of the groups that were drawn together.")
    ] = None
    weight: Annotated[str | None, typer.Option(help="With --labelled: column of weights.")] = None
    population_size: Annotated[int | None, typer.Option(help="With --labelled: units of the population.")] = (
        None
    )
    proxy: Annotated[str | None, typer.Option(help="With --labelled: column of the proxy.")] = None
    proxy_moments: Annotated[
        Path | None, typer.Option(help="With --labelled: file with columns stratum,mean,variance,count.")
    ] = None
    json: o.Json = False

    @property
    def answered(self) -> str:
        """The column of the labels: the first model's where models alone are compared."""
        only = self.metric is None and self.predicted is None and self.value == LABEL
        alone = only and self.compare and not (self.model or self.labelled)
        return o.listed(self.compare)[0] if alone else self.value


@dataclass(frozen=True, slots=True)
class GatheredEvidence:
    """A sample, what reads a column of its labels, the column to estimate from, and the models compared."""

    sample: Sample
    column: Column
    answered: str
    models: tuple[str, ...] = ()

    @property
    def labels(self) -> Labels:
        """The labels to estimate from."""
        return self.column(self.answered)


def require_present(path: Path) -> None:
    """Refuse the path of a study or of a sample at which there is nothing."""
    from stratal.tables.files import existing_file

    if path.suffix and not path.is_dir():
        existing_file(path)  # it names the files that are there
    if not path.exists():
        raise InputError(
            f"{path}: there is neither a study nor a sample here",
            allowed="the folder that `stratal init` made, or the file that `stratal draw` wrote",
            action="Check the path.",
        )


def _drawn(
    sample: Path | None, files: list[Path] | None, id_name: str | None
) -> tuple[Sample, Column, dict[str, Any]]:
    """Return the sample, what reads a column of its labels, and what a study's question says of them."""
    from stratal.designs.sample import Sample
    from stratal.labels.label_file import read_labels

    if sample is not None and sample.is_dir():
        return _studied(sample, files)
    if sample is not None:
        require_present(sample)
    if sample is not None and not files:
        raise InputError(
            f"{sample}: the labels are missing",
            allowed="SAMPLE LABELS…, STUDY, or --labelled FILE",
            action=f"Give their file too: stratal estimate {sample} {sample.parent / 'to_label.csv'}."
            if sample.suffix == ".parquet"
            else f"If {sample} was labelled elsewhere: stratal doctor {sample} shows the command.",
        )
    if sample is None or not files:
        raise InputError("nothing to estimate from", allowed="SAMPLE LABELS…, STUDY, or --labelled FILE")
    drawn = Sample.read(sample)
    ids, order = id_name or drawn.id_name, drawn.ids.tolist()
    if id_name is not None and id_name != "row":
        read_labels(*files, id_name=id_name, value=id_name, order=order)
    return drawn, lambda name: read_labels(*files, id_name=ids, value=name, order=order), {}


def _studied(folder: Path, files: list[Path] | None) -> tuple[Sample, Column, dict[str, Any]]:
    """Return what `_drawn` does, of a study with its present labels."""
    from stratal.designs.handover import SAMPLE_NAME
    from stratal.study.database import DATABASE
    from stratal.study.interim import estimate_options
    from stratal.study.opening import open_study

    given = files or [folder / "to_label.csv"]
    if (folder / SAMPLE_NAME).is_file() and not (folder / DATABASE).exists():
        raise InputError(
            f"{folder}: holds a sample, and no study",
            action=f"Give the files: stratal estimate {join(map(str, [folder / SAMPLE_NAME, *given]))}.",
        )
    if files:
        raise InputError(
            "a study has its labels in itself", given=files[0], action="Give the study's folder alone."
        )
    with open_study(folder, reading=True) as study:
        drawn, labels = study.sample(), study.labels()
        known = estimate_options(study, drawn)
    if not labels.answered:
        raise LabelError(
            f"{folder}: nothing is labelled yet",
            action=f"Let annotators label: stratal label {quote(str(folder))}.",
        )
    if known.pop("predicted", False):
        known["predicted"] = drawn.predicted

    def column(name: str) -> Labels:
        if name != LABEL:
            raise InputError("a study has one column of labels", given=repr(name), allowed=repr(LABEL))
        return labels

    return drawn, column, known


def gathered(asked: EvidenceOptions) -> tuple[EvidenceOptions, tuple[float, float] | None, GatheredEvidence]:
    """Return the options with what a study knows of them, the outcome's bounds, and what to estimate from.

    Examples
    --------
    >>> gathered(EvidenceOptions())
    Traceback (most recent call last):
    stratal.errors.InputError: nothing to estimate from...
    """
    bounds = o.pair("--bounds", asked.bounds)
    if asked.labelled is None:
        sample, column, known = _drawn(asked.sample, asked.labels, asked.id)
        asked = replace(asked, predicted=asked.predicted or known.get("predicted"))
        bounds = bounds or known.get("bounds")
        sample = _with_predictions(_post_stratified(sample, asked), asked.predicted, column)
    else:
        sample, column = _elsewhere(asked, asked.labelled)
    mapping = o.mapping("--map", asked.map)

    def counted(name: str) -> Labels:
        return replace(column(name), positive=asked.positive, mapping=mapping)

    return asked, bounds, GatheredEvidence(sample, counted, asked.answered)


def _post_stratified(sample: Sample, asked: EvidenceOptions) -> Sample:
    """Return the sample weighted to what is known of groups and proxies, if any are named."""
    from stratal.designs.margins import fit_margins
    from stratal.designs.post_strata import post_stratify

    if asked.margins is not None:
        return fit_margins(sample, o.listed(asked.margins), method=asked.margins_by)
    return sample if asked.post_stratify is None else post_stratify(sample, asked.post_stratify)


def _with_predictions(sample: Sample, predicted: str | None, column: Column) -> Sample:
    """Return the sample with the model's answers, from the labels where the draw did not keep them."""
    if predicted is None or predicted in sample.groups:
        return sample
    from stratal.estimation.columns import with_group

    return with_group(sample, predicted, column(predicted))


def _elsewhere(asked: EvidenceOptions, table: Path) -> tuple[Sample, Column]:
    """Return a sample that was drawn elsewhere, and what reads a column of its table."""
    from stratal.designs.elsewhere import labels_of
    from stratal.designs.sample import Sample

    groups = () if asked.by is None or asked.by == asked.stratum else (asked.by,)
    known: dict[str, Any] = {name: getattr(asked, name) for name in KNOWN}
    drawn, first = Sample.from_labelled(table, value=asked.value, groups=groups, **known)
    return drawn, lambda name: replace(labels_of(drawn, table, name), notes=first.notes)


def of_models(asked: EvidenceOptions, evidence: GatheredEvidence) -> GatheredEvidence:
    """Return the evidence with the models compared: columns of the labels, or levels of a long table.

    Examples
    --------
    >>> of_models(EvidenceOptions(compare="a,b"), GatheredEvidence(None, None, "a")).models
    ('a', 'b')
    """
    wanted = o.listed(asked.compare)
    if asked.model is None:
        return replace(evidence, models=wanted)
    from stratal.labels.label_file import by_model

    found = by_model(evidence.column(asked.model), evidence.labels, wanted)
    models = tuple(found)
    return GatheredEvidence(evidence.sample, lambda name: found[name], models[0], models)
