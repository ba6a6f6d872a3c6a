"""The first paper's own predictions, by role: `DIR/TASK/evaluated.npz`, `DIR/TASK/surrogate.npz`.

    python -m papers.roles DIR TASK ROLE LOGITS.npy LABELS.npy [--embeddings EMBEDDINGS.npy]

writes one such file from what a model's evaluation leaves behind. ROLE is `evaluated` (the paper's f) or
`surrogate` (f*), and with `@NAME` the same of another family of models: `evaluated@resnet`, whose surrogate
is `surrogate@resnet`, or `surrogate` where there is no file of that name. Rows of one task are in one order
in all its files.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from papers.classifiers import Task, Trained
from papers.loaders import arrays_of
from stratal.arrays import AnyArray, FloatArray
from stratal.errors import InputError, StratalError

EVALUATED, SURROGATE = "evaluated", "surrogate"

_LEAST = 1e-12
"""Least probability of a class, so that a cross-entropy is finite."""


def write_role(
    directory: Path,
    task: str,
    role: str,
    *,
    logits: AnyArray,
    labels: AnyArray,
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
    labels : int (N,)
        The true classes, 0 … C − 1.
    embeddings : float (N, d), optional
        Of the evaluated model, for strata from them.

    Raises
    ------
    InputError
        For a role of another name, shapes that do not fit, values that are not finite, and unknown classes.
    """
    if role.partition("@")[0] not in (EVALUATED, SURROGATE):
        raise InputError(
            "unknown role", given=role, allowed="evaluated, surrogate, each with @FAMILY or without"
        )
    arrays = {"logits": np.asarray(logits), "labels": np.asarray(labels)}
    arrays |= {} if embeddings is None else {"embeddings": np.asarray(embeddings)}
    path = directory / task / f"{role}.npz"
    _checked(arrays, str(path))
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
    found = {path.stem: _checked(arrays_of(path), str(path)) for path in sorted(folder.glob("*.npz"))}
    unknown = [role for role in found if role.partition("@")[0] not in (EVALUATED, SURROGATE)]
    missing = [role for role in (EVALUATED, SURROGATE) if role not in found]
    if missing or unknown:
        raise InputError(
            f"{folder}: no file of the role {missing[0]}" if missing else f"{folder}: files without a role",
            given=", ".join(f"{role}.npz" for role in found),
            allowed="evaluated.npz, surrogate.npz, and these with @FAMILY",
            action="Name each file by its model's role; see docs/papers/data.md.",
        )
    probabilities, labels, features = found[EVALUATED]
    for role, (others, other_labels, _) in found.items():
        if others.shape != probabilities.shape or not np.array_equal(labels, other_labels):
            raise InputError(
                f"{folder}: {role}.npz is of other rows or classes than evaluated.npz",
                given=f"{others.shape} and {probabilities.shape}",
                allowed="the same labels in the same order",
            )
    held_out, kept = np.array_split(np.random.default_rng(seed).permutation(len(labels)), 2)
    judges = {role: role.replace(EVALUATED, SURROGATE) for role in found if role.startswith(EVALUATED)}
    return Task(
        name=folder.name,
        held_out_labels=labels[held_out],
        labels=labels[kept],
        features=None if features is None else features[kept],
        models={role: Trained(held_out=p[held_out], population=p[kept]) for role, (p, _, _) in found.items()},
        judges={role: judge if judge in found else SURROGATE for role, judge in judges.items()},
    )


def _checked(arrays: dict[str, AnyArray], name: str) -> tuple[FloatArray, AnyArray, FloatArray | None]:
    """Return probabilities (N, C), labels (N,) and embeddings (N, d) of a file's arrays."""
    if "labels" not in arrays or not {"logits", "probabilities"} & set(arrays):
        raise InputError(
            f"{name} lacks predictions",
            given=", ".join(arrays),
            allowed="arrays 'labels' and 'logits' or 'probabilities'",
        )
    labels = np.asarray(arrays["labels"])
    given = arrays["logits"] if "logits" in arrays else np.log(np.maximum(arrays["probabilities"], _LEAST))
    scores = np.asarray(given, np.float64)
    features = np.asarray(arrays["embeddings"], np.float64) if "embeddings" in arrays else None
    if (
        scores.ndim != 2
        or scores.shape[:1] != labels.shape
        or (features is not None and len(features) != len(labels))
    ):
        raise InputError(f"{name}: one row of logits (N, C) per label is needed", given=scores.shape)
    if not np.all(np.isfinite(scores)):
        raise InputError(f"{name}: a value is not finite", allowed="finite logits or probabilities")
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= scores.shape[1]:
        raise InputError(f"{name}: labels are no classes", allowed=f"whole numbers 0 … {scores.shape[1] - 1}")
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances = np.maximum(chances / chances.sum(axis=1, keepdims=True), _LEAST)
    return chances, labels.astype(np.int64), features


@click.command()
@click.argument("directory", type=Path)
@click.argument("task")
@click.argument("role")
@click.argument("logits", type=Path)
@click.argument("labels", type=Path)
@click.option("--embeddings", type=Path, help="NumPy file (N, d) of the evaluated model's embeddings.")
def main(directory: Path, task: str, role: str, logits: Path, labels: Path, embeddings: Path | None) -> None:
    """Write the predictions of one model on one task from NumPy files."""
    try:
        columns = [None if path is None else np.load(path) for path in (logits, labels, embeddings)]
        assert columns[0] is not None
        assert columns[1] is not None
        print(write_role(directory, task, role, logits=columns[0], labels=columns[1], embeddings=columns[2]))
    except (StratalError, OSError, ValueError) as error:
        raise SystemExit(f"Error: {error}") from None


if __name__ == "__main__":
    main()
