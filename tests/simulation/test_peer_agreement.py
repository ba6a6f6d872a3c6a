"""Other models' answers as a proxy on real classifiers: what a label is worth, and what intervals cover."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.peer_agreement import EVALUATED, JUDGES, agreement, covered, judges, pool, sets, worth
from tests.tiers import cells, sized


@pytest.fixture(scope="module")
def digits():
    return pool("digits", 0)


@pytest.mark.filterwarnings("ignore")
def test_a_label_is_worth_more_than_by_the_plain_share_or_by_the_models_own_confidence(digits):
    answers, confidences, truth = digits
    found = []
    for own in list(EVALUATED)[: sized(3, 6)]:
        right = (answers[:, own] == truth).astype(float)
        others = sets(answers, truth, own, 0)
        share = {which: (among == answers[:, [own]]).mean(axis=1) for which, among in others.items()}
        for which in ("as trained", "40 clones of a bad model"):
            ours = worth(agreement(answers[:, own], others[which]), right, 100)
            found.append((ours, worth(share[which], right, 100), worth(confidences[:, own], right, 100)))
        assert agreement(answers[:, own], others["20 guessing models alone"]) is None

    ours, plain, confidence = np.exp(np.log(found).mean(axis=0))

    # Variances are exact, of given designs: what is compared with was measured over three pools.
    assert ours > 3.5
    assert ours > 1.1 * plain
    assert ours > 1.5 * confidence


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    cells(
        ["digits, fitted to the items", "noisy labels, similar models", "correlated errors, 5 classes"],
        fast=["noisy labels, similar models"],
    ),
)
def test_a_label_is_worth_at_least_as_much_as_by_the_plain_share_on_other_kinds_of_pools(name):
    answers, _, truth = pool(name, 0)
    rows: dict[str, list[tuple[float, float]]] = {}
    for own in list(EVALUATED)[: sized(2, 6)]:
        right = (answers[:, own] == truth).astype(float)
        for which, others in sets(answers, truth, own, 0).items():
            share = (others == answers[:, [own]]).mean(axis=1)
            pair = worth(agreement(answers[:, own], others), right, 100), worth(share, right, 100)
            rows.setdefault(which, []).append(pair)

    for which, pairs in rows.items():
        ours, plain = np.median(pairs, axis=0)
        assert ours >= 0.95, which
        # Two or three models are shrunk to their mean, which costs some of what fitted models give.
        if which not in ("2 models", "3 models"):
            assert ours >= 0.95 * plain, (which, pairs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", cells([50, 100], fast=[50]))
def test_intervals_cover_with_a_proxy_of_other_models(digits, n):
    answers, _, truth = digits
    own, draws = EVALUATED[0], sized(60, 1000)
    right = (answers[:, own] == truth).astype(float)

    hits = covered(agreement(answers[:, own], np.delete(answers, own, axis=1)), right, n, draws)

    # Four standard errors of a share of .94 below it.
    assert np.mean(hits) > 0.94 - 4 * np.sqrt(0.94 * 0.06 / draws)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", JUDGES)
def test_a_few_judges_cost_next_to_nothing_where_they_say_nothing(shared, name):
    verdicts, truth = judges(name)

    for own in range(verdicts.shape[1]):
        right = (verdicts[:, own] == truth).astype(float)
        proxy = agreement(verdicts[:, own], np.delete(verdicts, own, axis=1))
        for n in (50, 100, int(0.2 * len(truth))):
            assert worth(proxy, right, n) > 0.95, (own, n)
