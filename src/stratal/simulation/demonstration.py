"""Units whose labels are all known: of a file, and of the demonstration, a classifier trained on the spot.

Handwritten digits bundled with scikit-learn: 1,797 images. A logistic regression is trained on 300 of them
and predicts the other 1,497, whose labels are then revealed only where they are bought.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.designs.files import replacing
from stratal.designs.labelling_files import empty_folder
from stratal.designs.sample import Sample
from stratal.errors import InputError, installed
from stratal.estimation.estimand import Estimand
from stratal.estimation.estimands.means import Mean
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate
from stratal.planning.plan import Plan
from stratal.planning.planner import plan
from stratal.population import Population
from stratal.proxy import Proxy
from stratal.proxy.history import history_columns

TRAINING_IMAGES = 300
DATA_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemoData:
    """Predictions of the demonstration's classifier on images that it has not seen.

    Parameters
    ----------
    ids : text (N,)
    confidence : float (N,)
        Largest class probability.
    predicted, label : int (N,)
        The classifier's answer, and the truth.
    image : text (N,)
        The digit drawn in blocks of four shades: what annotators see.

    Examples
    --------
    >>> data = make_data()
    >>> len(data.ids), data.outcomes.shape
    (1497, (1497,))
    """

    ids: AnyArray
    confidence: FloatArray
    predicted: IntArray
    label: IntArray
    image: AnyArray

    @property
    def outcomes(self) -> FloatArray:
        """Whether the classifier is right (N,), as 0 and 1."""
        return np.asarray(self.predicted == self.label, dtype=np.float64)


class Demonstration(NamedTuple):
    """One run of the demonstration.

    Examples
    --------
    >>> shown = run(budget=60, seed=7)
    >>> shown.estimate.n, shown.truth > 0.8
    (60, True)
    """

    data: DemoData
    plan: Plan
    estimate: Estimate
    truth: float


def run(budget: int = 100, seed: int = 7) -> Demonstration:
    """Train, plan, draw, reveal the labels, and estimate.

    Parameters
    ----------
    budget : int
    seed : int

    Returns
    -------
    Demonstration

    Examples
    --------
    >>> run(budget=50, seed=1).plan.budget
    50
    """
    data = make_data()
    population = Population.from_arrays(proxy={"confidence": data.confidence}, ids=data.ids)
    planned = plan(population, budget)
    sample = planned.draw(seed)
    truth = dict(zip(data.ids.tolist(), data.outcomes.tolist(), strict=True))
    result = estimate(sample, {name: truth[name] for name in sample.ids.tolist()})
    return Demonstration(data, planned, result, float(data.outcomes.mean()))


def make_data() -> DemoData:
    """Return the predictions of a classifier trained on the spot.

    Raises
    ------
    MissingExtraError
        Without scikit-learn.

    Examples
    --------
    >>> float(make_data().confidence.min()) > 0.1
    True
    """
    with installed("scikit-learn", extra="demo"):
        from sklearn.datasets import load_digits
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(DATA_SEED).permutation(len(labels))
    training = order[:TRAINING_IMAGES]
    rest = np.sort(order[TRAINING_IMAGES:])
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    classifier.fit(images[training], labels[training])
    probabilities = classifier.predict_proba(images[rest])
    return DemoData(
        ids=np.array([f"digit-{number:04d}" for number in rest]),
        confidence=np.asarray(probabilities.max(axis=1), dtype=np.float64),
        predicted=np.asarray(classifier.classes_[probabilities.argmax(axis=1)], dtype=np.int64),
        label=np.asarray(labels[rest], dtype=np.int64),
        image=np.array([_drawn(image) for image in images[rest]]),
    )


def _drawn(image: FloatArray) -> str:
    """Return 64 shades from 0 to 16 as eight lines of blocks, two wide since characters are narrow."""
    shades = np.array([" ", "░", "▒", "▓", "█"])[np.ceil(image.reshape(8, 8) / 4).astype(int)]
    return "\n".join("".join(np.repeat(line, 2)) for line in shades)


def write_data(data: DemoData, folder: Path) -> tuple[Path, Path]:
    """Write predictions.parquet (id, confidence, predicted, image) and labels.csv (id, label: 1 where right).

    Parameters
    ----------
    data : DemoData
    folder : Path
        New or empty.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_data(make_data(), Path(folder) / "demo")[1].name
    'labels.csv'
    """
    import pyarrow as pa
    import pyarrow.parquet

    empty_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / "predictions.parquet", folder / "labels.csv"
    table = pa.table(
        {"id": data.ids, "confidence": data.confidence, "predicted": data.predicted, "image": data.image}
    )
    with replacing(written[0]) as predictions, replacing(written[1]) as labels:
        pyarrow.parquet.write_table(table, predictions)
        columns = data.ids.tolist(), data.outcomes.astype(int).tolist(), data.label.tolist()
        with labels.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([("id", "label", "digit"), *zip(*columns, strict=True)])
    return written


def fill_labels(path: Path) -> int:
    """Fill in the empty labels of a table that `draw` wrote for these images, and return how many.

    Where the sample next to it names a predicted column, labels are digits; otherwise whether the classifier
    is right, as 0 and 1.

    Parameters
    ----------
    path : Path
        A CSV file with the columns id and label; labels that are there stay.

    Raises
    ------
    InputError
        If a column is missing or an id is none of the demonstration's.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "to_label.csv"
    >>> _ = path.write_text("id,label\\ndigit-0001,\\n")
    >>> fill_labels(path), path.read_text().split()
    (1, ['id,label', 'digit-0001,1'])
    """
    data = make_data()
    drawn = path.with_name("sample.parquet")
    classes = drawn.exists() and Sample.read(drawn).question.answer is not None
    values = data.label if classes else data.outcomes.astype(int)
    truth = dict(zip(data.ids.tolist(), values.tolist(), strict=True))
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
        strange = (row["id"] for row in rows if row["id"] not in truth or "label" not in row)
        unknown: Any = next(strange, None if rows else "no row")
    except (OSError, UnicodeDecodeError, KeyError) as error:
        unknown = error
    if unknown is not None:
        what = f"{path}: this is not a table to label of the demonstration"
        allowed = "the to_label.csv of a draw, with the columns id (digit-0000 to digit-1796) and label"
        raise InputError(what, given=unknown, allowed=allowed)
    empty = [row for row in rows if not row["label"]]
    for row in empty:
        row["label"] = str(truth[row["id"]])
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        filled = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        filled.writeheader()
        filled.writerows(rows)
    return len(empty)


def read_benchmark(
    file: str | Path,
    outcome: str,
    proxies: Sequence[str] = (),
    *,
    estimand: Estimand | None = None,
    bounds: tuple[float, float] | None = None,
    scaled: bool | None = None,
    predicted: str | None = None,
    predicts: Mapping[str, str] | None = None,
    **reading: Any,
) -> tuple[Population, AnyArray]:
    """Read a fully labelled file into memory.

    Parameters
    ----------
    file : path
        Parquet, CSV or JSON Lines.
    outcome : str
        Column of the labels, known for every unit: z, or true classes where the estimand compares classes.
    proxies : sequence of str
        Columns, as in `Population.read`.
    estimand : Estimand, optional
        The mean unless given. Its columns are read with the others.
    bounds : (float, float), optional
        Of the outcome and what the proxies predict.
    scaled : bool, optional
        False for proxies that only order.
    predicted : str, optional
        Column of the model's answers.
    predicts : mapping of proxy to str, optional
        What proxies predict, as in `Population.read`.
    **reading
        What else `Population.read` is to know: `id`, `delimiter`, `directory`; `answers` and `history`, of
        which proxies are made.

    Returns
    -------
    (Population, (N,))
        The labels are numbers, or text where they are classes.

    Raises
    ------
    InputError
        If the labels are among the columns that predict them, are missing somewhere, are no numbers where
        they must be, or lie outside the bounds.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pilot.csv"
    ...     _ = path.write_text("id,confidence,correct\\na,0.9,1\\nb,0.4,0\\n")
    ...     population, z = read_benchmark(path, "correct", ["confidence"])
    >>> population.size, z
    (2, array([1., 0.]))
    """
    quantity = Mean() if estimand is None else estimand
    proxies = tuple(dict.fromkeys((*proxies, *quantity.proxy_names)))
    groups = tuple(dict.fromkeys((*quantity.groups, *([predicted] if predicted else []))))
    numbers = tuple(name for name in quantity.numbers if name not in proxies)
    if outcome in (*proxies, *groups, *numbers):
        raise InputError(
            f"the outcome cannot be a column that predicts it: {outcome!r}", action="Name another column."
        )
    # An outcome between bounds is read as proxies are, which checks that it lies between them.
    of_mean = estimand is None
    read = Population.read(
        file,
        proxy=[*proxies, outcome] if of_mean else list(proxies) or None,
        groups=groups + ((outcome,) if quantity.of_classes else ()),
        features=numbers + (() if of_mean or quantity.of_classes else (outcome,)),
        predicted=predicted,
        bounds=bounds,
        **reading,
    )
    numbers += history_columns(read.feature_names)
    made = [info for info in read.proxies if info.name not in (*proxies, outcome)]
    proxies = (*(info.name for info in made), *proxies)
    names = (*proxies, *groups, *numbers, outcome)
    batches = list(read.batches(names))
    whole = {name: np.concatenate([np.asarray(batch[name]) for batch in batches]) for name in names}
    on_own_scale = {
        one.name: Proxy(values=whole[one.name], scaled=one.scaled, bounds=one.bounds, name=one.name)
        for one in made
    }
    population = Population.from_arrays(
        proxy={name: whole[name] for name in proxies} | on_own_scale or None,
        groups={name: whole[name] for name in groups} or None,
        features={name: whole[name] for name in numbers} or None,
        show=None if proxies or groups or numbers else {outcome: whole[outcome]},
        predicted=predicted,
        bounds=bounds if proxies else None,
        scaled=scaled,
        predicts=predicts,
    )
    labels = whole[outcome]
    return population, labels.astype(np.float64) if of_mean else labels
