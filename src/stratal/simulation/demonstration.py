"""Fully labelled populations for simulations: the data of the demonstration, or a file.

The demonstration uses the 1,797 handwritten digits of scikit-learn. A logistic regression is trained on 300
images and predicts the other 1,497. Their labels are used only for the units that are sampled.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.designs.files import replacing
from stratal.designs.labelling_files import require_empty_folder
from stratal.designs.sample import Sample
from stratal.errors import InputError, optional_import
from stratal.estimation.entry_points import estimate
from stratal.estimation.estimand import Estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.means import Mean
from stratal.planning.entry_points import plan
from stratal.planning.plan import Plan
from stratal.population import Population
from stratal.population.declaration import REFUSE
from stratal.proxy import Proxy
from stratal.proxy.history import history_columns
from stratal.question.scores import Predictions
from stratal.tables.files import csv_line

# Number of training images, small enough that the classifier makes errors. The other 1,497 are the
# population.
TRAINING_IMAGES = 300

# The split into training images and population is the same in every run.
DATA_SEED = 0

# Optimiser steps of the logistic regression. With the default of 100 it does not converge on these images.
MAX_ITERATIONS = 1000

# Pixels have values from 0 to 16, and there are five shades: blank and four blocks.
PIXEL_LEVELS_PER_SHADE = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemoData:
    """Predictions of the demonstration's classifier for the images that it was not trained on.

    Parameters
    ----------
    ids : text (N,)
    confidence : float (N,)
        Largest class probability.
    predicted_digit, true_digit : int (N,)
    image : text (N,)
        The digit as block characters, as shown to annotators.
    """

    ids: AnyArray
    confidence: FloatArray
    predicted_digit: IntArray
    true_digit: IntArray
    image: AnyArray

    @property
    def outcomes(self) -> FloatArray:
        """1 if the prediction is correct, otherwise 0 (N,)."""
        return np.asarray(self.predicted_digit == self.true_digit, dtype=np.float64)


class Demonstration(NamedTuple):
    """Result of one run of the demonstration."""

    data: DemoData
    plan: Plan
    estimate: Estimate
    truth: float


def run_demonstration(budget: int = 100, seed: int = 7) -> Demonstration:
    """Train the classifier, plan, draw a sample, label it and estimate the accuracy."""
    data = make_data()
    population = Population.from_arrays(proxy={"confidence": data.confidence}, ids=data.ids, predicts="right")
    sampling_plan = plan(population, budget)
    sample = sampling_plan.draw(seed)
    outcome_by_id = dict(zip(data.ids.tolist(), data.outcomes.tolist(), strict=True))
    labels = {unit_id: outcome_by_id[unit_id] for unit_id in sample.ids.tolist()}
    return Demonstration(data, sampling_plan, estimate(sample, labels), float(data.outcomes.mean()))


def make_data() -> DemoData:
    """Train the classifier and return its predictions; raise `MissingExtraError` without scikit-learn."""
    with optional_import("scikit-learn", extra="demo"):
        from sklearn.datasets import load_digits
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(DATA_SEED).permutation(len(labels))
    training = order[:TRAINING_IMAGES]
    population = np.sort(order[TRAINING_IMAGES:])
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=MAX_ITERATIONS))
    classifier.fit(images[training], labels[training])
    probabilities = classifier.predict_proba(images[population])
    predicted_digits = classifier.classes_[probabilities.argmax(axis=1)]
    return DemoData(
        ids=np.array([f"digit-{number:04d}" for number in population]),
        confidence=np.asarray(probabilities.max(axis=1), dtype=np.float64),
        predicted_digit=np.asarray(predicted_digits, dtype=np.int64),
        true_digit=np.asarray(labels[population], dtype=np.int64),
        image=np.array([_image_text(image) for image in images[population]]),
    )


def _image_text(image: FloatArray) -> str:
    """Return an image of 64 pixels as eight lines of block characters."""
    levels = np.ceil(image.reshape(8, 8) / PIXEL_LEVELS_PER_SHADE).astype(int)
    shades = np.array([" ", "░", "▒", "▓", "█"])[levels]
    # Each pixel has two characters because characters are about twice as high as wide.
    return "\n".join("".join(np.repeat(line, 2)) for line in shades)


def write_data(data: DemoData, folder: Path) -> tuple[Path, Path]:
    """Write predictions.parquet and labels.csv to a new or empty folder, and return both paths.

    The columns are id, confidence, predicted and image, and id, label (1 if correct) and digit.
    """
    import pyarrow as pa
    import pyarrow.parquet

    require_empty_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    predictions_path = folder / "predictions.parquet"
    labels_path = folder / "labels.csv"
    columns = {
        "id": data.ids,
        "confidence": data.confidence,
        "predicted": data.predicted_digit,
        "image": data.image,
    }
    label_columns = (data.ids, data.outcomes.astype(int), data.true_digit)
    label_rows = zip(*(column.tolist() for column in label_columns), strict=True)
    # Neither file is created if one of them cannot be written.
    with replacing(predictions_path) as partial_predictions, replacing(labels_path) as partial_labels:
        pyarrow.parquet.write_table(pa.table(columns), partial_predictions)
        with partial_labels.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(map(csv_line, [("id", "label", "digit"), *label_rows]))
    return predictions_path, labels_path


def fill_labels(path: Path) -> int:
    """Fill in the missing labels of a table that `draw` wrote for the demonstration, and return their number.

    Labels are true digits if the sample next to the table has a predicted column. Otherwise they are 1 where
    the prediction is correct and 0 elsewhere. Existing labels do not change.

    Raises
    ------
    InputError
        If a column is missing or an id does not belong to the demonstration.
    """
    data = make_data()
    sample_path = path.with_name("sample.parquet")
    labels_are_digits = sample_path.exists() and Sample.read(sample_path).question.answer is not None
    if labels_are_digits:
        values = data.true_digit
    else:
        values = data.outcomes.astype(int)
    label_by_id = dict(zip(data.ids.tolist(), values.tolist(), strict=True))
    rows = _read_labelling_rows(path, label_by_id.keys())
    unlabelled_rows = [row for row in rows if not row["label"]]
    for row in unlabelled_rows:
        row["label"] = str(label_by_id[row["id"]])
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return len(unlabelled_rows)


def _read_labelling_rows(path: Path, unit_ids: Collection[str]) -> list[dict[str, str]]:
    """Return the rows of a CSV file with the columns id and label, or raise an error for other files."""
    problem: object = None
    rows: list[dict[str, str]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
        if not rows:
            problem = "no row"
        for row in rows:
            if row["id"] not in unit_ids or "label" not in row:
                problem = row["id"]
                break
    except (OSError, UnicodeDecodeError, KeyError) as error:
        problem = error
    if problem is not None:
        raise InputError(
            f"{path}: not a labelling table of the demonstration",
            given=problem,
            allowed="the to_label.csv of a draw, with the columns id (digit-0000 to digit-1796) and label",
        )
    return rows


def read_benchmark(
    file: str | Path,
    outcome: str,
    proxies: Sequence[str] = (),
    *,
    estimand: Estimand | None = None,
    bounds: tuple[float, float] | None = None,
    scaled: bool | None = None,
    predicted: str | None = None,
    predicts: Predictions | None = None,
    **reading: Any,
) -> tuple[Population, AnyArray]:
    """Read a fully labelled file, from which `simulate` draws samples, into memory.

    Parameters
    ----------
    file : path
        Parquet, CSV or JSON Lines.
    outcome : str
        Column of the labels of all units: numbers, or true classes if the estimand compares classes.
    proxies : sequence of str
        Columns, as in `Population.read`.
    estimand : Estimand, optional
        Default: the mean. The columns of the estimand are read too.
    bounds : (float, float), optional
        Bounds of the outcome and of the quantity that the proxies predict.
    scaled : bool, optional
        False for proxies that only rank the units.
    predicted : str, optional
        Column of the model's answers.
    predicts : str or mapping of proxy to str, optional
        What proxies predict, as in `Population.read`.
    **reading
        Other keywords of `Population.read`: `id`, `delimiter`, `directory`, and `answers` and `history`, from
        which proxies are computed.

    Returns
    -------
    (Population, (N,))
        The labels are numbers for a mean, otherwise as in the file.

    Raises
    ------
    InputError
        If the outcome is also a predicting column, or if labels are missing, not numeric where numbers are
        required, or outside the bounds.
    """
    is_mean = estimand is None
    if estimand is None:
        estimand = Mean()
    proxies = tuple(dict.fromkeys((*proxies, *estimand.proxy_names)))
    groups = tuple(dict.fromkeys((*estimand.groups, *([predicted] if predicted else []))))
    features = tuple(name for name in estimand.numeric_columns if name not in proxies)
    if outcome in (*proxies, *groups, *features):
        raise InputError(
            f"the outcome cannot be a column that predicts it: {outcome!r}", action="Name another column."
        )
    # The outcome is read as a column of its type. Numbers read as a proxy are checked against the bounds.
    names_by_role = {"proxy": [*proxies], "groups": [*groups], "features": [*features]}
    role = "features"
    if is_mean:
        role = "proxy"
    elif estimand.of_classes:
        role = "groups"
    names_by_role[role].append(outcome)
    file_population = Population.read(
        file,
        proxy=names_by_role["proxy"] or None,
        groups=names_by_role["groups"],
        features=names_by_role["features"],
        predicted=predicted,
        bounds=bounds,
        missing=REFUSE,  # replicates are drawn from units whose proxy is known
        **reading,
    )
    # The reader adds proxies and features if it computes a history, or scores from `answers`.
    features += history_columns(file_population.feature_names)
    derived_info = [info for info in file_population.proxies if info.name not in (*proxies, outcome)]
    proxies = (*(info.name for info in derived_info), *proxies)
    names = (*proxies, *groups, *features, outcome)
    batches = list(file_population.batches(names))
    columns = {name: np.concatenate([np.asarray(batch[name]) for batch in batches]) for name in names}
    # Proxies computed by the reader keep their scale and bounds.
    derived_proxies = {
        info.name: Proxy(values=columns[info.name], scaled=info.scaled, bounds=info.bounds, name=info.name)
        for info in derived_info
    }
    proxy_columns = {name: columns[name] for name in proxies} | derived_proxies
    group_columns = {name: columns[name] for name in groups}
    feature_columns = {name: columns[name] for name in features}
    shown_columns: dict[str, AnyArray] = {}
    # A population needs at least one column.
    if not (proxy_columns or group_columns or feature_columns):
        shown_columns = {outcome: columns[outcome]}
    population = Population.from_arrays(
        proxy=proxy_columns or None,
        groups=group_columns or None,
        features=feature_columns or None,
        show=shown_columns or None,
        predicted=predicted,
        bounds=bounds if proxies else None,
        scaled=scaled,
        predicts=predicts,
    )
    labels = columns[outcome]
    if is_mean:
        labels = labels.astype(np.float64)
    return population, labels
