"""Rates fill again, and clients are not remembered for ever."""

from __future__ import annotations

from stratal.study.web import server as limits
from stratal.study.web.server import RateLimiter


def test_a_bucket_fills_again_at_its_rate():
    now = [0.0]
    rates = RateLimiter(rate=2.0, burst=4, clock=lambda: now[0])
    assert [rates.allow("ann") for _ in range(6)] == [True] * 4 + [False] * 2
    now[0] = 1.0

    assert [rates.allow("ann") for _ in range(3)] == [True, True, False]
    assert rates.allow("bob")


def test_a_bucket_never_holds_more_than_a_burst():
    now = [0.0]
    rates = RateLimiter(rate=2.0, burst=4, clock=lambda: now[0])
    rates.allow("ann")
    now[0] = 1e9

    assert sum(rates.allow("ann") for _ in range(10)) == 4


def test_many_clients_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(limits, "MAX_CLIENTS", 10)
    rates = RateLimiter(rate=1.0, burst=1)
    for number in range(1000):
        rates.allow(str(number))

    assert len(rates._buckets) <= 10
