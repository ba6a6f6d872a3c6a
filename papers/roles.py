"""The first paper's own predictions, by role: `DIR/TASK/evaluated.npz`, `DIR/TASK/surrogate.npz`.

    python -m papers.roles DIR TASK ROLE LOGITS.npy LABELS.npy [--embeddings EMBEDDINGS.npy]
    python -m papers.roles DIR TASK ROLE CONFIDENCE.npy LABELS.npy --predicted PREDICTED.npy
    python -m papers.roles DIR NAME scores SCORES.npy OUTCOMES.npy

writes one such file from what a model's evaluation leaves behind. ROLE is `evaluated` (the paper's f) or
`surrogate` (f*), and with `@NAME` the same of another family of models: `evaluated@resnet`, whose surrogate
is `surrogate@resnet`, or `surrogate` where there is no file of that name. Rows of one task are in one order
in all its files. Without probabilities of all classes a confidence will do, that the evaluated model's answer
is right; then there is no Figure 4, of losses. The third line writes the other papers' sets: `papers.files`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from papers.classifiers import Task, Trained
from papers.files import write_scores
from papers.loaders import arrays_of
from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.errors import InputError, StratalError

EVALUATED, SURROGATE, SCORES = "evaluated", "surrogate", "scores"

_LEAST = 1e-12
"""Least probability of a class, so that a cross-entropy is finite."""


def write_role(
    directory: Path,
    task: str,
    role: str,
    *,
    logits: AnyArray,
    labels: AnyArray,
    predicted: AnyArray | None = None,
    embeddings: AnyArray | None = None,
) -> Path:
    """Write one model's predictions on one task, and return the file.

    Parameters
    ----------
    directory : path
    task : str
        Name of the task, such as a row of Table 1, with which it is then compared.
    role : str
        `evaluated` or `surrogate`, with `@NAME` for another family.
    logits : float (N, C)
        Or (N,): the probability that the evaluated model's answer is right.
    labels : int (N,)
        The true classes, 0 … C − 1.
    predicted : int (N,), optional
        The evaluated model's answers, where it has no logits.
    embeddings : float (N, d), optional
        Of the evaluated model, for strata from them.

    Raises
    ------
    InputError
        For a role of another name, shapes that do not fit, values that are not finite, and unknown classes.
    """
    if role == SCORES:
        return write_scores(directory, task, labels, logits)
    if role.partition("@")[0] not in (EVALUATED, SURROGATE):
        raise InputError(
            "unknown role", given=role, allowed="evaluated, surrogate, also with @FAMILY; scores"
        )
    name = "confidence" if np.ndim(logits) == 1 else "logits"
    given = {name: logits, "labels": labels, "predicted": predicted, "embeddings": embeddings}
    arrays = {key: np.asarray(array) for key, array in given.items() if array is not None}
    path = directory / task / f"{role}.npz"
    _Predictions.of(arrays, str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, allow_pickle=False, **arrays)
    return path


def role_tasks(directory: Path, *, seed: int) -> list[Task]:
    """Return every task of a directory of predictions, half of its rows held out to calibrate the surrogate.

    Parameters
    ----------
    directory : path
    seed : int
        Of the halves.

    Raises
    ------
    InputError
        For a task without an evaluated model or a surrogate, files that cannot be read or lack an array, and
        roles whose labels or classes differ. Which model is which is never guessed from its accuracy.
    """
    folders = sorted({path.parent for path in directory.glob("*/*.npz")})
    if not folders:
        raise InputError(
            f"{directory} holds no predictions", allowed="TASK/evaluated.npz and TASK/surrogate.npz"
        )
    return [_task(folder, seed) for folder in folders]


def _task(folder: Path, seed: int) -> Task:
    found = {path.stem: _Predictions.of(arrays_of(path), str(path)) for path in sorted(folder.glob("*.npz"))}
    unknown = [role for role in found if role.partition("@")[0] not in (EVALUATED, SURROGATE)]
    missing = [role for role in (EVALUATED, SURROGATE) if role not in found]
    if missing or unknown:
        raise InputError(
            f"{folder}: no file of the role {missing[0]}" if missing else f"{folder}: files without a role",
            given=", ".join(f"{role}.npz" for role in found),
            allowed="evaluated.npz, surrogate.npz, and these with @FAMILY",
            action="Name each file by its model's role; see docs/papers/data.md.",
        )
    first = found[EVALUATED]
    for role, other in found.items():
        if other.scores.shape != first.scores.shape or not np.array_equal(first.labels, other.labels):
            raise InputError(
                f"{folder}: {role}.npz is of other rows or classes than evaluated.npz",
                given=f"{other.scores.shape} and {first.scores.shape}",
                allowed="the same labels in the same order, all with probabilities or all with a confidence",
            )
        if role.startswith(EVALUATED) and other.predicted is None:
            what = f"{folder}: {role}.npz has a confidence and no answers"
            raise InputError(what, allowed="logits, probabilities, or confidence with predicted")
    judges = {role: role.replace(EVALUATED, SURROGATE) for role in found if role.startswith(EVALUATED)}
    judges = {role: judge if judge in found else SURROGATE for role, judge in judges.items()}
    if first.scores.ndim == 1 and len(set(judges.values())) < len(judges):
        what = f"{folder}: a surrogate's confidence is of one model's answers"
        raise InputError(what, allowed="a surrogate of its own for each family")
    halves = np.array_split(np.random.default_rng(seed).permutation(len(first.labels)), 2)
    return Task(
        name=folder.name,
        held_out_labels=first.labels[halves[0]],
        labels=first.labels[halves[1]],
        features=None if first.embeddings is None else first.embeddings[halves[1]],
        models={role: own.trained(*halves) for role, own in found.items()},
        judges=judges,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Predictions:
    """One file: probabilities (N, C) or a confidence (N,), and the model's answers (N,) if they are known."""

    scores: FloatArray
    labels: AnyArray
    predicted: AnyArray | None
    embeddings: FloatArray | None

    def trained(self, held_out: IntArray, kept: IntArray) -> Trained:
        """Return the model on two halves of the rows."""
        correct = None if self.predicted is None else np.asarray(self.predicted == self.labels, np.float64)
        right = None if correct is None else (correct[held_out], correct[kept])
        return Trained(held_out=self.scores[held_out], population=self.scores[kept], right=right)

    @classmethod
    def of(cls, arrays: dict[str, AnyArray], name: str) -> _Predictions:
        """Return checked predictions of a file's arrays."""
        if "labels" not in arrays or not {"logits", "probabilities", "confidence"} & set(arrays):
            raise InputError(
                f"{name} lacks predictions",
                given=", ".join(arrays),
                allowed="arrays 'labels' and 'logits', 'probabilities' or 'confidence' (with 'predicted')",
            )
        labels, alone = np.asarray(arrays["labels"]), "confidence" in arrays
        given = arrays.get("confidence", arrays.get("logits"))
        if given is None:
            given = np.log(np.maximum(arrays["probabilities"], _LEAST))
        scores = np.asarray(given, np.float64)
        rows = [np.asarray(arrays[key]) for key in ("embeddings", "predicted") if key in arrays]
        fits = all(len(part) == len(labels) for part in rows)
        if scores.ndim != (1 if alone else 2) or scores.shape[:1] != labels.shape or not fits:
            raise InputError(f"{name}: one row of logits (N, C) per label is needed", given=scores.shape)
        if not np.all(np.isfinite(scores)) or (alone and (scores.min() < 0 or scores.max() > 1)):
            raise InputError(
                f"{name}: a value is not finite", allowed="finite logits, or a confidence between 0 and 1"
            )
        most = np.inf if alone else scores.shape[1]
        if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= most:
            raise InputError(f"{name}: labels are no classes", allowed=f"whole numbers 0 … {most - 1:g}")
        predicted = arrays.get("predicted")
        if not alone:
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            scores = np.maximum(scores / scores.sum(axis=1, keepdims=True), _LEAST)
            predicted = scores.argmax(axis=1)
        embeddings = np.asarray(arrays["embeddings"], np.float64) if "embeddings" in arrays else None
        return cls(scores=scores, labels=labels.astype(np.int64), predicted=predicted, embeddings=embeddings)


@click.command()
@click.argument("directory", type=Path)
@click.argument("task")
@click.argument("role")
@click.argument("logits", type=Path)
@click.argument("labels", type=Path)
@click.option("--predicted", type=Path, help="NumPy file (N,) of the model's answers, with a confidence.")
@click.option("--embeddings", type=Path, help="NumPy file (N, d) of the evaluated model's embeddings.")
def main(directory: Path, task: str, role: str, **files: Path | None) -> None:
    """Write the predictions of one model on one task from NumPy files."""
    try:
        arrays: dict[str, Any] = {name: np.load(path) for name, path in files.items() if path is not None}
        print(write_role(directory, task, role, **arrays))
    except (StratalError, OSError, ValueError) as error:
        raise SystemExit(f"Error: {error}") from None


if __name__ == "__main__":
    main()
