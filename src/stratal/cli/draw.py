"""`stratal plan`, `draw` and `select`: what a budget will buy, and which units to label."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Struct, structs

import stratal
from stratal.cli.command import Needs, Option, argument, command, given, part, words
from stratal.cli.options import ConfidenceLevel, Number, Output, Planning, Reading, Seed, Text, Whole
from stratal.cli.output import Result, progress
from stratal.cli.parsing import Widths, joined, listed, mapping, pair, place
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal import Population, Sample, Selection
    from stratal.planning import RequiredSampleSize
    from stratal.question import Question
    from stratal.study import Study


DESIGNS = "auto, simple-random, stratified, poisson, proportional-to-size, systematic, clusters, successive"

# What options of planning need where a sample is drawn.
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


class SharedDrawOptions(Planning, frozen=True, kw_only=True):
    """How a sample is drawn from a file.

    Parameters
    ----------
    cluster : str
        Column of groups for --design clusters.
    """

    seed: Seed = 0
    design: Annotated[
        str,
        Option(
            f"{DESIGNS}; auto is as recommended. Poisson and proportional-to-size take a measure "
            "of size after a colon: sqrt-variance (as usual), equal or a column."
        ),
    ] = "auto"
    cluster: Annotated[Text, Option(needs="with --design clusters")] = None

    def sample(self, *, pilot: bool = False) -> tuple[Sample, str | None]:
        """Draw the first round; of a half-width only a pilot, if that is asked for, and say why as large."""
        if self.design not in ("auto", "simple-random", "stratified"):
            return _unequal(self), None
        made = self.plan(pilot=pilot)
        with progress("drawing"):
            drawn = made.using(None if self.design == "auto" else self.design).draw(self.seed)
        return drawn, made.notes[-1] if pilot else None

    def declared(self, question: Question) -> Question:
        """Return the question with what the options declare of the labels."""
        if self.outcome is not None or self.bounds is not None:
            scale = self.outcome or "bounded"
            bounds = pair("--bounds", self.bounds)
            question = question.with_outcome(scale=scale, bounds=bounds)
        values = {name: value for name, value in self.counted.items() if value is not None}
        models = listed(self.compare)
        if len(models) == 1:
            action = "Name their columns of outcomes: --compare MODEL_A,MODEL_B."
            raise InputError("a comparison needs two models", given=models[0], action=action)
        question = question.refine(models=models, target=self.target)
        return question.with_outcome(**values)


class PlanFile(
    Struct, kw_only=True, tag_field="kind", tag="stratal-plan", omit_defaults=True, forbid_unknown_fields=True
):
    """How a sample is drawn from a file of predictions: what `plan --output` writes, and `draw` reads.

    Parameters
    ----------
    stratal : str
        The version that wrote it.
    options : SharedDrawOptions
        Those that are not as usual; the file's path is relative to the plan's folder.
    population : mapping
        The digest of the population, by which a file that has changed since is refused.
    row_base : int, optional
        The number of the first row, where ids are row numbers.
    question : mapping, optional
        The roles of the columns, what each proxy predicts, and how labels become numbers, as they were when
        the plan was written; a draw with another question is refused.
    """

    stratal: str
    options: SharedDrawOptions
    population: dict[str, Any] | None = None
    row_base: int | None = None
    question: dict[str, Any] | None = None

    @classmethod
    def of(cls, options: SharedDrawOptions, population: Population | None) -> PlanFile:
        """Return what is to be written of these options, and of the population that they were read to."""
        if population is None:
            return cls(stratal=stratal.__version__, options=options)
        digest = population.digest(seed=0).to_dict()
        return cls(
            stratal=stratal.__version__,
            options=options,
            population=digest,
            row_base=population.row_base,
            question=planned_question(population, options),
        )

    @classmethod
    def read(cls, path: Path) -> PlanFile | None:
        """Return the plan in a file, None for a file that is none or is not there."""
        if path.suffix.lower() != ".json" or not path.is_file():
            return None
        with path.open("rb") as stream:
            text = stream.read(_LARGEST)
        if b'"stratal-plan"' not in text[:100]:
            return None
        try:
            found = msgspec.json.decode(text, type=cls, dec_hook=lambda _, value: place(value))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            action = "Write it again: stratal plan … --output."
            raise InputError(f"{path}: the plan is damaged ({error})", action=action) from None
        options = found.options
        if "://" in str(options.file):
            file = options.file
        else:
            file = path.parent / options.file
        past = options.history and str(path.parent / options.history)
        width = options.half_width
        width = Widths(width) if isinstance(width, tuple) else width
        options = structs.replace(options, file=file, history=past, half_width=width)
        return structs.replace(found, options=options)

    @classmethod
    def beside(cls, sample: Path) -> PlanFile | None:
        """Return the plan by which a sample was drawn, None where it is not beside it."""
        from stratal.designs.labelling_files import PLAN_NAME

        return cls.read(sample.parent / PLAN_NAME)

    def text(self, folder: Path) -> str:
        """Return what a file in a folder holds."""
        places = {"file": self.options.file, "history": self.options.history}
        for name, file in places.items():
            if file is None or "://" in str(file):
                continue
            try:
                places[name] = Path(os.path.relpath(Path(file).resolve(), folder.resolve())).as_posix()
            except ValueError:  # another drive of Windows
                places[name] = Path(file).resolve().as_posix()
        written = structs.replace(self, options=structs.replace(self.options, **places))
        encoded = msgspec.json.encode(written, enc_hook=lambda value: Path(value).as_posix())
        return msgspec.json.format(encoded, indent=2).decode() + "\n"

    def require_unchanged(self, path: Path, population: Population) -> None:
        """Refuse a population other than the one that was planned for."""
        from stratal.designs.extending import differing
        from stratal.population.declaration import stored_row_base
        from stratal.population.digest import PopulationDigest

        if self.population is None:
            return
        numbered = population.numbered_from(stored_row_base(self.row_base, self.options.id))
        if self.question is not None:
            refuse_other_question(path, self.question, planned_question(population, self.options))
        known = PopulationDigest(**self.population)
        now = numbered.digest(seed=0)
        changed = differing(population.proxy_names, known, now)
        if changed or known.size != now.size:
            raise InputError(
                f"{self.options.file}: has changed since {path} was written"
                + (f":{changed}" if changed else ""),
                given=f"{now.size:,} units",
                allowed=f"{known.size:,} units, as they were",
                action="Bring the earlier file back, or plan again.",
            )


def planned_question(population: Population, options: SharedDrawOptions) -> dict[str, Any]:
    """Return the question of a plan as JSON has it."""
    from stratal.designs import question_of
    from stratal.estimation import as_estimand

    question = question_of(population, population.group_names, population.shown_names)
    question = options.declared(question)
    if options.goal is not None:
        question = replace(question, estimand=as_estimand(options.goal).to_dict())
    return question.to_dict()


def refuse_other_question(path: Path, planned: dict[str, Any], present: dict[str, Any]) -> None:
    """Refuse a draw whose columns have other roles than in the plan, such as a proxy on another scale."""
    # A draw may keep and show more columns than were planned for.
    from stratal.question import ROLES

    # A draw may declare these, if the plan did not.
    refined = (*(role.field for role in ROLES if role.several), "models", "target")
    for name in ("id", "scores", "answer", "outcome", "estimand", *refined):
        was_planned = name in planned or name not in refined
        if was_planned and planned.get(name) != present.get(name):
            raise InputError(
                f"{path}: the plan's question and the file's differ in {name!r}",
                given=f"{present.get(name)} now",
                allowed=f"{planned.get(name)}, as planned",
                action="Bring the earlier file back, or plan again.",
            )


# Bytes of a plan; more is none.
_LARGEST = 2**20


class DrawOptions(SharedDrawOptions, frozen=True, kw_only=True):
    """The options of `draw`: how to draw, where to write, and how to go on from an earlier sample.

    Parameters
    ----------
    extend : SAMPLE
        A sample with labels, to go on from.
    labels : paths
        Labels so far, for --extend; may be repeated.
    value : str, default label
        Column of the label, for --extend.
    same_rows : bool
        Row numbers in the labels are those of the sample's rows.
    additional : int
        Units to add, for --extend.
    """

    file: Annotated[Path, argument("FILE", "A plan, or predictions.", parser=place)] = None  # type: ignore[assignment]
    output: Output
    extend: Path | None = None
    labels: Annotated[list[Path] | None, Option(needs="with --extend")] = None
    value: Annotated[Text, Option(needs="with --extend")] = None
    same_rows: Annotated[bool, Option(needs="with --extend")] = False
    additional: Annotated[Whole, Option(needs="with --extend")] = None

    def with_plan(self, plan: PlanFile | None, *, extending: bool) -> DrawOptions:
        """Return the options with those of a plan, where they are not given anew.

        Raises
        ------
        InputError
            For an option of planning that is given beside a plan to be drawn.
        """
        if plan is None:
            return self
        stored = plan.options
        if extending and self.file is not None:
            stored = structs.replace(stored, file=self.file, remote=self.remote)
        require_named(part(Reading, stored), part(Reading, self))
        plain = SharedDrawOptions(file=Path())
        known = {}
        for name in SharedDrawOptions.__struct_fields__:
            usual, planned, given = (getattr(one, name) for one in (plain, plan.options, self))
            if name == "file":
                if given is None or not extending:
                    known[name] = planned
                else:
                    known[name] = given
            elif given == usual and planned != usual and not (extending and name in _FIRST.split()):
                known[name] = planned
            elif given not in (usual, planned) and not (extending or _may_differ(name, planned == usual)):
                option_name = "--" + name.replace("_", "-")
                given = f"{option_name} with {self.file}"
                action = "Leave it out, or plan again with it."
                raise InputError(f"{option_name} belongs to the plan", given=given, action=action)
        if extending and self.additional is not None:
            known.pop("half_width", None)
        return structs.replace(self, **known)


# Options of a first round, which a sample carries itself.
_FIRST = "budget seed design cluster residual_sd strata stratify by allocation minimum estimand for_"

# Options that may be given beside a plan: what is shown or kept, and how the file is read.
_NOT_PLANNED = "seed show groups threads memory engine"


def _may_differ(name: str, unplanned: bool) -> bool:
    """Return whether an option may be given beside a plan, given whether the plan leaves it out."""
    from stratal.question import ROLES

    # Judges, compared models and the target change no draw.
    added = (*(role.keyword for role in ROLES if role.several), "compare", "target")
    return name in _NOT_PLANNED.split() or (unplanned and name in added)


@command(DrawOptions, without="assume", needs={_FIRST: "without --extend (in a first round)", **DRAW_NEEDS})
def draw(requested: DrawOptions) -> Result:
    """Draw the units to label, according to a plan or by the options of `plan`.

    Writes sample.parquet, which the estimate needs, and to_label.csv: ids, the columns of --show and an
    empty column `label`, in random order, without anything that would lead the annotators. plan.json says
    how it was drawn, for `study new` and for another round.

    With --extend, --labels and --additional it draws another round of the same sample, sent to where the
    labels so far say that it helps most; to_label.csv then holds the new units alone.

    With --half-width it draws a pilot; with --extend and --labels as many more units as the labels say are
    needed, and none, nothing being written, once the interval is that narrow.
    """
    from stratal.designs.labelling_files import columns_to_fill, empty_folder, write_labelling_folder
    from stratal.estimation import as_estimand
    from stratal.report.pages import draw_page

    empty_folder(requested.output)
    needed = why = None
    if requested.extend is None:
        source = requested.file
        plan = None if source is None else PlanFile.read(source)
        requested = requested.with_plan(plan, extending=False)
        if source is None:
            raise InputError("there is nothing to draw from", allowed="a plan, or a file of predictions")
        sample, why = requested.sample(pilot=requested.half_width is not None)
        if plan is not None and sample.population is not None:
            plan.require_unchanged(source, sample.population)
    else:
        requested, sample, needed = _extended(requested, requested.extend)
        if needed is not None and needed.additional == 0:
            if needed.estimand:
                every = "every unit that matters is drawn"
            else:
                every = "every unit is drawn"
            if needed.reached:
                reason = "the interval is narrow enough"
            else:
                reason = every
            wanted = needed.wanted
            extended = str(requested.extend)
            return Result(
                {"sample": extended, "new": 0, "half_width": wanted, "needed": needed.to_dict()},
                f"No more labels: {reason} (± {needed.half_width:.4g}, wanted ± {wanted:g}).",
                ("estimate", extended, *(requested.labels or [])),
            )
    sample = replace(sample, question=requested.declared(sample.question))
    text = PlanFile.of(part(SharedDrawOptions, requested), None).text(requested.output)
    written = write_labelling_folder(sample, requested.output, text)
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
    if sample.question.outcome.label_format is not None:
        found["label_format"] = sample.question.outcome.label_format
    found["columns_to_fill"] = list(columns_to_fill(sample))
    width = requested.half_width
    if width is not None:
        found |= {"half_width": width, "needed": None if needed is None else needed.to_dict()}
    if why is not None:
        found["pilot"] = why
    names = sample.design.stratum_names
    sizes = sample.summary.sizes.tolist()
    rows = zip(names, sizes, sample.n_h.tolist(), strict=True) if len(names) == len(sizes) else ()
    shown = requested.extend is not None or len(sample.shown) > 0
    page = draw_page(found, [list(row) for row in rows], has_columns=shown)
    labels = [*(requested.labels or []), written.to_label]
    goal = as_estimand(sample.question.estimand)
    additional = (requested.budget or 0) - sample.size
    if requested.extend is None and goal.has_two_rounds and additional > 0:
        rest = ("--labels", written.to_label, "--additional", additional, *connection_words(requested))
        return Result(
            found, page, ("draw", "--extend", written.sample, *rest, "--output", f"{requested.output}-2")
        )
    if not goal.is_estimated:
        require = goal.to_dict()["require"]
        return Result(found, page, ("threshold", written.sample, *labels, "--require", require))
    if width is None:
        look = () if sample.looks is None or requested.extend is not None else ("--look", 1)
        return Result(found, page, ("estimate", written.sample, *labels, *look))
    given = [word for path in labels for word in ("--labels", path)]
    following = (*given, *connection_words(requested), "--output", f"{requested.output}-next")
    then = ("draw", "--extend", written.sample, *following)
    return Result(found, page, then)


def _extended(requested: DrawOptions, extend: Path) -> tuple[DrawOptions, Sample, RequiredSampleSize | None]:
    """Return the options with those of the first round, the sample with another, and how narrow it is."""
    requested = requested.with_plan(PlanFile.beside(extend), extending=True)
    additional = requested.additional
    half_width = requested.half_width
    if requested.file is None:
        raise file_unknown(extend)
    if not requested.labels or (additional is None) == (half_width is None):
        what = "--extend needs the labels so far and the number of units to add, or a half-width"
        raise InputError(what, allowed="--extend SAMPLE --labels FILE, with --additional N or --half-width W")
    earlier = stratal.Sample.read(extend)
    how: Any = {"value": requested.value, "same_rows": requested.same_rows}
    labels = stratal.read_labels(*requested.labels, id_name=earlier.question.id, **how)
    labels = replace(labels, **requested.counted)
    shared: dict[str, Any] = {"confidence_level": requested.confidence_level}
    if requested.predicted is not None:
        shared["predicted"] = requested.predicted
    with progress("reading and drawing"):
        reading = part(Reading, requested)  # what a plan adds was compared with the command line
        shared["population"] = population_again(reading, earlier, reading)
        needed = None
        if half_width is not None:
            needed = stratal.labels_needed(earlier, labels, half_width, **shared)
            if needed.additional == 0:
                return requested, earlier, needed
        more = stratal.next_round(earlier, labels, additional=additional, half_width=half_width, **shared)
    return requested, more, needed


def _unequal(requested: SharedDrawOptions) -> Sample:
    """Return a sample of a design other than simple random and stratified sampling."""
    name, colon, size = requested.design.partition(":")
    size = size or "sqrt-variance"
    kind = stratal.designs.Design.of_kind(name)
    if kind is None or (colon and name not in ("poisson", "proportional-to-size")):
        raise InputError("no such design", given=repr(requested.design), allowed=DESIGNS)
    reading = part(Reading, requested)
    budget = requested.budget
    if budget is None:
        raise InputError(f"--design {name} needs --budget", action="Add --budget N, the number of labels.")
    if requested.cluster is not None:
        reading = structs.replace(reading, groups=joined(*reading.group_names, requested.cluster))
    if size not in ("equal", "sqrt-variance"):
        reading = structs.replace(reading, features=joined(*listed(reading.features), size))
    with progress("drawing"):
        drawn: Sample = kind.of_options(budget, size, requested.cluster).draw(
            reading.population(), requested.seed
        )
    return drawn


def file_unknown(sample: Path) -> InputError:
    """Return the error that nothing says which file a sample was drawn from."""
    what = f"{sample}: its folder has no plan.json, which names the file of its predictions"
    return InputError(what, action="Give their file: stratal draw FILE --extend SAMPLE ….")


def reading_of(study: Study) -> dict[str, Any]:
    """Return how the predictions of a study were read, as keywords of `Reading`, if it is known."""
    try:
        stored = json.loads(study.setting("reading") or "{}")
        known = {name: value for name, value in stored.items() if name in Reading.__struct_fields__}
        if known:
            msgspec.convert(known, Reading, dec_hook=lambda _, value: place(value))
    except (msgspec.ValidationError, ValueError, AttributeError) as error:
        what = f"{study.folder}: how its predictions were read is damaged ({error})"
        raise InputError(what, action="Give their file: --population FILE.") from None
    return known | {"file": place(known["file"])} if known else {}


def connection_words(reading: Reading) -> list[str]:
    """Return the options by which the next command may open what this one did: an address, or Spark."""
    from stratal.tables.untrusted import find_connections

    connections = find_connections(structs.asdict(reading))
    engine = connections.pop("engine", None)
    if engine is not None:
        return ["--engine", engine]
    return ["--remote"] if connections else []


def require_named(stored: Reading, named: Reading | None) -> None:
    """Refuse to open a connection, or Spark, that a plan or a study names and the command line does not.

    Whoever wrote the plan or the study would choose with which computer this one talks.

    Parameters
    ----------
    stored : Reading
        How a plan or a study says that the file is read.
    named : Reading or None
        The options of the command line.
    """
    from stratal.tables.untrusted import find_connections

    connections = find_connections(structs.asdict(stored))
    engine = connections.pop("engine", None)
    if engine is not None and (named is None or named.engine != engine):
        what = "the plan or study reads its file with another engine, which may be on another computer"
        raise InputError(what, given=f"--engine {engine}", action=_NAME_IT_IF_TRUSTED)
    # Spark, once it is named, reads its own addresses.
    if connections and engine is None and not (named is not None and named.remote):
        what = "the plan or study names a file that is not on this computer"
        given = f"{next(iter(connections.values()))} without --remote"
        raise InputError(what, given=given, action=_NAME_IT_IF_TRUSTED)


_NAME_IT_IF_TRUSTED = (
    "If you trust where it comes from, type the option too; or give a file of this computer "
    "(--population FILE where the command has it)."
)


def population_again(reading: Reading, earlier: Sample, named: Reading | None = None) -> Population:
    """Read the file that a sample was drawn from, with the columns that the sample knows.

    Connections are opened only if they are `named` on the command line.
    """
    from stratal.population.declaration import fitting
    from stratal.question import ROLES

    require_named(reading, named)
    stored_roles = {
        role.keyword: getattr(reading, role.keyword) or joined(*role.columns(earlier.question)) or None
        for role in ROLES
    }
    known = structs.replace(
        reading,
        id=reading.id or earlier.question.id,
        proxy=reading.proxy or (None if reading.softmax else ",".join(earlier.proxy_names)),
        tags=reading.tags or earlier.question.outcome.tag_format,
        predicts=reading.predicts or _declared_meanings(earlier),
        **stored_roles,
    )
    # What the sample holds is compared, and so must be read; a pattern may name it already.
    for name, held in (("groups", earlier.groups), ("show", earlier.shown)):
        columns = listed(getattr(reading, name))
        lacking = [column for column in held if column not in fitting(columns, tuple(held))]
        known = structs.replace(known, **{name: joined(*columns, *lacking) or None})
    try:
        return known.with_columns_of(earlier.question.estimand).population()
    except InputError as error:
        action = "Give the file that it was drawn from, unchanged."
        raise InputError(f"the sample's file cannot be read as it was: {error}", action=action) from error


def _declared_meanings(sample: Sample) -> str | None:
    """Return what a sample's proxies are declared to predict, as `--predicts` takes it."""
    declared = (f"{score.name}={score.predicts}" for score in sample.question.scores if score.declared)
    return ",".join(declared) or None


# Options of a first round, which a sample carries itself.
_FIRST_OF_SELECTION = "answers budget confidence_level indifference estimand positive seed show"


class SelectOptions(Reading, frozen=True, kw_only=True):
    """The options of `select`: which models, when to stop, where to write, and how to go on.

    Parameters
    ----------
    output : DIR
        Directory for the units to label; must be empty or not exist. With --extend, only look without it.
    answers : COL,… or PATTERN
        The models' answers: 'answer_*'.
    budget : int
        Labels at most.
    indifference : float
        How much worse than the best the winner may be.
    estimand : str, default accuracy
        What the best is best in: accuracy, preference (labels name the column of the preferred model, or say
        tie), or a metric of classes such as f1, balanced_accuracy or mcc.
    extend : DIR
        The folder of the last round, or its sample, to go on from.
    labels : paths
        Labels of all rounds so far, for --extend; may be repeated.
    value : str, default label, or one column for each model
        Column of the label, for --extend. Without labels: columns called as those of the answers, which hold
        right (1) or wrong (0) for each model.
    positive : LABEL
        The class of a metric; else the average over classes.
    map : LABEL=NUMBER,…
        What labels count as: a class (kitty=cat), or no answer (unsure=).
    same_rows : bool
        Row numbers in the labels are those of the sample's rows.
    additional : int, default 50, then a quarter of those drawn
        Units of the next round.
    """

    file: Annotated[Path, argument("FILE", "The models' answers; none with --extend.", parser=place)] = None  # type: ignore[assignment]
    answers: Text = None
    output: Path | None = None
    budget: Whole = None
    confidence_level: ConfidenceLevel = 0.95
    indifference: float = 0.01
    estimand: Text = None
    positive: Text = None
    seed: Seed = 0
    extend: Path | None = None
    labels: Annotated[list[Path] | None, Option(needs="with --extend")] = None
    value: Annotated[Text, Option(needs="with --extend")] = None
    map: Annotated[Text, Option(needs="with --extend")] = None
    same_rows: Annotated[bool, Option(needs="with --extend")] = False
    additional: Whole = None


def answers_as_groups(requested: Reading) -> Reading:
    """Return how to read a file with the columns of the models' answers as groups, and nothing else."""
    from stratal.population.declaration import columns_fitting
    from stratal.tables.readers import open_table

    if requested.file is None or requested.answers is None:
        ways = "FILE --answers 'answer_*', or --extend DIR --labels FILE"
        raise InputError("there is nothing to select from", allowed=ways)
    reading: Any = requested.of_file
    existing = list(open_table(requested.file, reading).names)
    file = str(requested.file)
    own = (requested.id or "",)
    names = columns_fitting("answers", requested.answers, existing, file, own)
    return structs.replace(
        part(Reading, requested), groups=joined(*names), answers=None, predicted=None, proxy=None
    )


@command(
    SelectOptions,
    without="proxy predicts groups by features predicted bounds margin softmax missing label history",
    needs={_FIRST_OF_SELECTION: "without --extend (in a first round)"},
)
def select(requested: SelectOptions) -> Result:
    """Find the best of several models, with labels only for units on which their answers differ.

    Writes a first round as `draw` does: sample.parquet, and to_label.csv, whose column `label` takes the
    right answers. With --extend and --labels it says which models can still be the best and writes the next
    round, until the winner is known: however often one looks, it is further than the indifference below the
    best with probability 1 − confidence at most.
    """
    from stratal.designs.labelling_files import empty_folder, write_labelling_folder

    output = requested.output
    if output is not None:
        empty_folder(output)
    elif requested.extend is None:
        raise InputError("--output is missing", action="Say where the units to label go: --output round1/.")
    if requested.extend is None:
        reading = answers_as_groups(requested)
        with progress("reading and drawing"):
            selection = stratal.select(
                reading.population(),
                reading.group_names,
                criterion=requested.estimand or "accuracy",
                confidence=requested.confidence_level,
                **given(requested, "indifference", "budget", "positive", "additional", "seed"),
            )
    else:
        reading, selection = _next(requested, requested.extend)
    found = selection.to_dict()
    page = selection._page()
    if selection.done or output is None:
        return Result(found, page)
    options = SharedDrawOptions(**structs.asdict(reading), seed=selection.sample.seed)
    written = write_labelling_folder(selection.sample, output, PlanFile.of(options, None).text(output))
    found |= {"sample": str(written.sample), "to_label": str(written.to_label), "new": written.new}
    labels = [word for path in (*(requested.labels or []), written.to_label) for word in ("--labels", path)]
    folder = str(output).rstrip("/")
    stem = folder.rstrip("0123456789")
    if stem != folder:
        following = f"{stem}{int(folder[len(stem) :]) + 1}"
    else:
        following = f"{folder}-2"
    written_as = selection.sample.question.outcome.label_format
    how = "" if written_as is None else f" with {written_as}"
    line = f"To label: {written.to_label}  ({written.new} units: fill in the column `label`{how})"
    typed = (*labels, *connection_words(reading), "--output", f"{following}/")
    return Result(found, page, line, ("select", "--extend", output, *typed))


def _next(requested: SelectOptions, extend: Path) -> tuple[Reading, Selection]:
    """Return how the answers were read, and the selection with the labels so far."""
    from stratal.designs.labelling_files import SAMPLE_NAME
    from stratal.labels.label_files import read_labels_or_verdicts

    if not requested.labels:
        raise InputError("--extend needs the labels so far", allowed="--extend DIR --labels FILE")
    place = extend / SAMPLE_NAME if extend.is_dir() else extend
    earlier = stratal.Sample.read(place)
    plan = PlanFile.beside(place)
    reading = part(Reading, requested)
    if requested.file is None:
        if plan is None:
            raise file_unknown(extend)
        reading = part(Reading, plan.options)
    meant = mapping("--map", requested.map)
    how: Any = {"id_name": earlier.question.id, "mapping": meant, "same_rows": requested.same_rows}
    with progress("reading and drawing"):
        units = population_again(reading, earlier, part(Reading, requested))
        selection = stratal.Selection.resume(earlier, units)
        if requested.value is None:
            given = read_labels_or_verdicts(*requested.labels, models=selection.models, **how)
        else:
            given = stratal.read_labels(*requested.labels, value=requested.value, **how)
        return reading, selection.update(given, requested.additional)


ALONE = "population_size rate equal_answers"
EITHER = "file detect power budget half_width confidence_level details value calibrate_by indifference"

NOT_SELECTING = """proxy predicts groups by features predicted margin softmax missing label history
    half_width detect labels looks strata stratify allocation minimum assume outcome bounds output"""


class PlanOptions(Planning, frozen=True, kw_only=True):
    """The options of `plan`: with a file, or with the number of units alone.

    Parameters
    ----------
    population_size : int
        Plan without a file: units in all.
    rate : float
        Without a file: the share that is expected to be right.
    detect : float
        The difference that is to show, of two models (--estimand difference:A,B with a file), of two versions
        or of a kappa.
    equal_answers : float, default as if they erred independently
        With --detect, without a file: share of items on which both answer alike.
    power : float
        With --detect: the chance that it shows.
    labels : paths
        Labels to promise by, of an earlier sample of FILE or, with the proxy's column, of other units; may be
        repeated.
    value : str, default label
        Column of the label, in --labels.
    calibrate_by : COL
        Learn from --labels what the proxy is worth in each category of this column by itself.
    output : FILE
        Write the plan, which `draw` takes: plan.json.
    details : bool
        Print the designs, the strata and all notes, after the answer.
    select : bool
        How many labels `stratal select` will need to find the best of the models in --answers.
    indifference : float
        How much worse than the best the winner may be.
    """

    file: Annotated[Path, argument("FILE", "Predictions; none with --population-size.", parser=place)] = None  # type: ignore[assignment]
    population_size: Whole = None
    rate: float = 0.5
    detect: Annotated[Number, Option(needs="without --budget or --half-width")] = None
    equal_answers: Annotated[Number, Option(needs="with --detect")] = None
    power: Annotated[float, Option(needs="with --detect")] = 0.8
    labels: list[Path] | None = None
    value: Annotated[Text, Option(needs="with --labels")] = None
    calibrate_by: Annotated[Text, Option(needs="with --labels")] = None
    output: Path | None = None
    details: bool = False
    select: Annotated[bool, Option(needs="with --answers")] = False
    indifference: Annotated[float, Option(needs="with --select")] = 0.01


OF_A_FILE = " ".join(
    name for name in PlanOptions.__struct_fields__ if name not in f"{ALONE} {EITHER}".split()
)


OF_THESE_UNITS = (
    "The forecast is of the mean of these units. The interval for the superpopulation is wider: it also "
    "covers the error of the units themselves."
)
OF_ONE_MODEL = "The forecast is of the mean of one model; a difference of two models may be less precise."


@command(
    PlanOptions,
    without="show",
    needs={OF_A_FILE: "with FILE", ALONE: "without FILE", NOT_SELECTING: "without --select"},
)
def plan(requested: PlanOptions) -> Result:
    """Say what a budget will buy, before any label is bought.

    Compares designs and estimators by their expected standard error, recommends one, and shows how many
    units of each stratum would be labelled. With --half-width it finds the budget instead: one that will do
    even if the proxy is off (--assume). To draw a pilot first is cheaper, and it is what `stratal draw
    --half-width` does.

    With --labels, of an earlier sample or a pilot, what is expected follows from what they show of the proxy
    instead of its own word.
    """
    from stratal.designs.files import replacing
    from stratal.planning import plan_to_detect
    from stratal.planning.planner import plan_for_rate
    from stratal.planning.power import width_to_detect
    from stratal.report.pages import detection_page, plan_page

    page = partial(plan_page, details=requested.details)
    shows = None
    if requested.file is None and requested.detect is not None:
        known = given(requested, *ALONE.split(), "power", "confidence_level")
        return Result(plan_to_detect(requested.detect, **known), detection_page)
    if requested.file is None:
        size = requested.population_size
        if size is None:
            ways = "FILE --budget N, --population-size N --rate R --budget N, or --detect D --rate R"
            raise InputError("there is nothing to plan for", allowed=ways)
        known = given(requested, "budget", "half_width", "confidence_level")
        return Result(plan_for_rate(size, requested.rate, **known).to_dict(), page)
    if requested.select:
        return _selection(requested)
    if requested.detect is not None:
        width = width_to_detect(requested.detect, requested.power, requested.confidence_level)
        width = float(f"{width:.4g}")  # as one types it
        chance = f"with a chance of {requested.power:g} at ± {width:.3g}"
        shows = f"A difference of {requested.detect:g} shows {chance}."
        requested = structs.replace(requested, half_width=width)
    requested = structs.replace(requested, by=requested.by or requested.calibrate_by)
    made = requested.plan(**_learned(requested))
    if requested.target == "superpopulation":
        made = replace(made, assumptions=(*made.assumptions, OF_THESE_UNITS))
    if requested.compare:
        made = replace(made, assumptions=(*made.assumptions, OF_ONE_MODEL))
    # A half-width is drawn for by a pilot, unless there are labels already; these may also recommend another
    # design than the proxy alone.
    wanted: dict[str, Any] = structs.asdict(part(Planning, requested)) | {"assume": "conservative"}
    if requested.half_width is None or requested.labels:
        # A budget of money is more than the number of labels.
        if made.allocation.method == "cost-optimal":
            budget = requested.budget
        else:
            budget = made.budget if made.rounds is None else made.rounds.total
        wanted |= {"budget": budget, "half_width": None}
    design = made.recommended.design if requested.labels else "auto"
    options = SharedDrawOptions(**wanted, design=design)
    drawing = words(options)
    if requested.output is not None:
        path = requested.output
        if path.suffix.lower() != ".json":
            raise InputError("--output is a JSON file", given=path, allowed="such as plan.json")
        if path.exists() and PlanFile.read(path) is None:
            raise InputError(f"{path}: exists and is not a plan", action="Choose another --output.")
        with replacing(path) as partly:
            partly.write_text(PlanFile.of(options, made.population).text(path.parent), encoding="utf-8")
        drawing = [str(requested.output), *connection_words(requested)]
    drawing += ["--seed", "7", "--output", new_folder("audit")]
    every = made.half_width is not None and made.budget == made.population_size
    if every:
        about = "No sample short of all units reaches this half-width."
    else:
        about = None
    return Result(made.to_dict(), shows, page, about, ("draw", *drawing))


def _learned(requested: PlanOptions) -> dict[str, Any]:
    """Return the earlier labels, and their units where the file holds the proxy's column too."""
    from stratal.tables.small_table import SmallTable

    if not requested.labels:
        return {}
    reading = requested.for_planning
    units = None
    columns = {*listed(reading.proxy), *reading.group_names} if reading.proxy else {None}
    others = [path for path in requested.labels if columns <= set(SmallTable.of(path, str(path)).lists)]
    if others:
        same = given(reading, "id", "proxy", "groups", "by", "bounds", "margin", "predicts")
        units = Reading(file=others[0], **same).population()
    name = requested.id or "id" if units is None else units.id_name
    labels = stratal.read_labels(*requested.labels, id_name=name, value=requested.value, **requested.counted)
    return {"labels": labels, "labelled_units": units, "calibrate_by": requested.calibrate_by}


def _selection(requested: PlanOptions) -> Result:
    """Say how many labels it takes to find the best of several models."""
    from stratal.planning.selection import expected_labels
    from stratal.report.text import Page

    reading = answers_as_groups(requested)
    found = expected_labels(
        reading.population(),
        reading.group_names,
        requested.confidence_level,
        requested.indifference,
        criterion=requested.estimand or "accuracy",
    )
    few, many, most = (f"{found[name]:,}" for name in ("optimistic", "conservative", "most"))
    lines = [
        f"The best of {found['models']} models within {requested.indifference:g}: about {few} labels if "
        f"others are clearly worse, {many} if all are equally good, {most} at most, "
        f"of {found['population_size']:,} units."
    ]
    read_by = "file id answers delimiter remote engine threads memory"
    shared = f"{read_by} budget confidence_level indifference estimand positive"
    following = SelectOptions(**given(requested, *shared.split()))
    typed = (*words(following), "--output", new_folder("round1"))
    return Result(found, Page(lines=lines), ("select", *typed))


def new_folder(name: str) -> str:
    """Return the name of a folder that does not exist or is empty: `audit`, `audit-2`, …"""
    number = 1
    chosen = name
    while Path(chosen).exists() and not (Path(chosen).is_dir() and not any(Path(chosen).iterdir())):
        number += 1
        chosen = f"{name}-{number}"
    return f"{chosen}/"
