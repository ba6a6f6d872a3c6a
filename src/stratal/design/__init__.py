"""Designs: the random mechanisms that pick units, and the variance of any weighted mean under each."""

from stratal.design.base import Design
from stratal.design.stratified import SimpleRandom, Stratified

__all__ = ["Design", "SimpleRandom", "Stratified"]
