"""A sample of an earlier command, and the file that it was drawn from, read again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stratal.cli import options as o
from stratal.errors import InputError, near_names, same_name

if TYPE_CHECKING:
    from stratal.designs.sample import Sample
    from stratal.labels.labels import Labels
    from stratal.population.population import Population


def so_far(
    reading: o.Reading, sample: Path, labels: list[Path], value: str
) -> tuple[Sample, Labels, bool | str]:
    """Read a sample and its labels; the third is the column of the model's answers, if labels are classes."""
    from stratal.designs.sample import Sample
    from stratal.labels.label_file import read_labels

    earlier = Sample.read(sample)
    given = read_labels(*labels, id_name=earlier.id_name, value=value)
    return earlier, given, earlier.predicted if reading.predicted and earlier.predicted else False


def as_drawn(reading: o.Reading, earlier: Sample) -> o.Reading:
    """Return how to read the file that a sample was drawn from, as far as the sample knows.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.5]), seed=7)
    >>> as_drawn(o.Reading(file=Path("p.csv")), sample).proxy
    'proxy'
    """
    known = replace(
        reading,
        id=reading.id or earlier.id_name,
        proxy=reading.proxy or (None if reading.softmax else ",".join(earlier.proxy_names)),
        groups=reading.groups or ",".join(earlier.groups),
        show=reading.show or ",".join(earlier.shown),
        predicted=reading.predicted or earlier.predicted,
    )
    return o.with_columns_of(known, earlier.estimand)


def population_again(reading: o.Reading, earlier: Sample) -> Population:
    """Read the file that a sample was drawn from; of another one say that it is, and what it lacks.

    Examples
    --------
    >>> import stratal, tempfile
    >>> file = Path(tempfile.mkdtemp(), "p.csv")
    >>> _ = file.write_text("id,text\\na,x\\nb,y\\n")
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.5, 0.7]), seed=7)
    >>> population_again(o.Reading(file=file), sample)
    Traceback (most recent call last):
    stratal.errors.InputError: ...p.csv: the sample was not drawn from this file, which lacks 'proxy' ...
    """
    from stratal.population.inspection import column_names

    asked = as_drawn(reading, earlier)
    try:
        return asked.population()
    except InputError as error:
        listed = (name for text in (asked.proxy, asked.groups, asked.show) for name in o.listed(text))
        named = {asked.id, asked.predicted, *listed}
        existing = column_names(asked.file, **asked.of_file)
        own = (earlier.id_name, *earlier.proxy_names, *earlier.groups, *earlier.shown)
        lacking = [name for name in own if name in named and same_name(name, existing) is None]
        if not lacking:
            raise
        what = ", ".join(map(repr, lacking))
        raise InputError(
            f"{asked.file}: the sample was not drawn from this file, which lacks {what}",
            given=f"columns {near_names('', existing)}",
            action="Give the file that it was drawn from, unchanged: its other units are drawn next.",
        ) from error
