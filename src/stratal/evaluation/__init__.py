"""All requested results for a sample and its labels, in one object: `stratal.evaluate`."""

from stratal.designs.labelling_files import sample_file as sample_file
from stratal.estimation.requirement import joint_verdict as joint_verdict
from stratal.estimation.requirement import metrics_to_log as metrics_to_log
from stratal.evaluation.evaluation import Evaluation as Evaluation
from stratal.evaluation.evaluation import evaluate as evaluate
from stratal.evaluation.request import EvaluationRequest as EvaluationRequest
from stratal.evaluation.sources import is_sample as is_sample
from stratal.evaluation.sources import require_present as require_present

__all__ = [
    "Evaluation",
    "EvaluationRequest",
    "evaluate",
    "is_sample",
    "joint_verdict",
    "metrics_to_log",
    "require_present",
    "sample_file",
]
