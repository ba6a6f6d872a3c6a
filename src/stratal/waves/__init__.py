"""Waves: samples of one kind of items from week to week, the change between them, and an alarm."""

from stratal.waves.trends import Trend as Trend
from stratal.waves.trends import trend as trend

__all__ = ["Trend", "trend"]
