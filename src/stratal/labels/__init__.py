"""Labels of annotators: their files, several annotators and their agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratal.names import import_on_use

if TYPE_CHECKING:
    from stratal.labels.annotators import annotator_agreement as annotator_agreement
    from stratal.labels.labels import Labels as Labels

_NAMES = {
    "stratal.labels.annotators": "annotator_agreement",
    "stratal.labels.labels": "Labels",
}
__all__ = sorted(" ".join(_NAMES.values()).split())
__getattr__, __dir__ = import_on_use(__name__, _NAMES)
