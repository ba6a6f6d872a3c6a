"""Labels of annotators: their files, several annotators and their agreement."""

from stratal.labels.annotators import annotator_agreement
from stratal.labels.labels import Labels

__all__ = ["Labels", "annotator_agreement"]
