"""Which threshold of a score: accepted sets with a guarantee, curves with bands, calibration."""

from stratal.thresholds.report_request import ReportRequest as ReportRequest

__all__ = ["ReportRequest"]
