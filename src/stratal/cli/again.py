"""A sample of an earlier command, and the file that it was drawn from, read again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stratal.cli import options as o

if TYPE_CHECKING:
    from stratal.labels.labels import Labels
    from stratal.sampling.sample import Sample


def so_far(
    reading: o.Reading, sample: Path, labels: list[Path], value: str
) -> tuple[Sample, Labels, bool | str]:
    """Read a sample and its labels; the third is the column of the model's answers, if labels are classes."""
    from stratal.labels.label_file import read_labels
    from stratal.sampling.sample import Sample

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
