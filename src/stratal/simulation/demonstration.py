"""The demonstration: a classifier trained on the spot, and its accuracy found from a few labels.

Handwritten digits bundled with scikit-learn: 1,797 images. A logistic regression is trained on 300 of them
and predicts the other 1,497, whose labels are then revealed only where they are bought.
"""

from __future__ import annotations

import csv
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.designs.files import replacing
from stratal.designs.handover import empty_folder
from stratal.designs.sample import Sample
from stratal.errors import InputError, MissingExtraError
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate
from stratal.planning.planner import Plan, plan
from stratal.population import Population

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Demonstration:
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

    def opening(self) -> list[str]:
        """Return the lines that tell what is shown."""
        return [
            f"A classifier of handwritten digits, trained on {TRAINING_IMAGES} images, has answered "
            f"{len(self.data.ids):,} more.",
            f"How often is it right? {self.estimate.n} labels may be bought.",
        ]

    def closing(self) -> str:
        """Return the line that compares with the truth."""
        inside = "inside" if self.truth in self.estimate.confidence_interval() else "outside"
        return f"The truth, from all {len(self.data.ids):,} labels: {self.truth:.4f} ({inside} the interval)."

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict."""
        return {"plan": self.plan.to_dict(), "estimate": self.estimate.to_dict(), "truth": self.truth}


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
    return Demonstration(
        data=data,
        plan=planned,
        estimate=result,
        truth=float(data.outcomes.mean()),
    )


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
    try:
        from sklearn.datasets import load_digits
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        raise MissingExtraError("scikit-learn", extra="demo") from None
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(DATA_SEED).permutation(len(labels))
    training, rest = order[:TRAINING_IMAGES], np.sort(order[TRAINING_IMAGES:])
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
    classes = drawn.exists() and Sample.read(drawn).predicted is not None
    values = data.label if classes else data.outcomes.astype(int)
    truth = dict(zip(data.ids.tolist(), values.tolist(), strict=True))
    rows: list[dict[str, str]] = []
    columns: tuple[str, ...] = ()
    with suppress(OSError, UnicodeDecodeError), path.open(encoding="utf-8-sig", newline="") as stream:
        table = csv.DictReader(stream)
        rows, columns = list(table), tuple(table.fieldnames or ())
    if not {"id", "label"} <= set(columns):
        raise InputError(
            f"{path}: this is not a table to label",
            given=", ".join(columns) or "no column that could be read",
            allowed="the to_label.csv of a draw, with the columns id and label",
        )
    unknown = next((row["id"] for row in rows if row["id"] not in truth), None)
    if unknown is not None:
        raise InputError(
            f"{path}: {unknown!r} is not an image of the demonstration", allowed="digit-0000 to digit-1796"
        )
    empty = [row for row in rows if not row["label"]]
    for row in empty:
        row["label"] = str(truth[row["id"]])
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        filled = csv.DictWriter(stream, columns, lineterminator="\n")
        filled.writeheader()
        filled.writerows(rows)
    return len(empty)
