"""`papers.formulas` against all samples of tiny populations, and against each other."""

import itertools

import numpy as np
import pytest

from papers import formulas
from stratal import InputError
from stratal.simulation.draws import Truth

Z = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.2, 0.4, 0.0])
PROXY = np.array([0.1, 0.7, 0.8, 0.4, 0.9, 0.3, 0.1, 0.2])
CODES = np.repeat([0, 1], 4)


def moments(z=Z, codes=CODES):
    truth = Truth.of(z, None, codes, int(codes.max()) + 1)
    return truth.sizes, truth.variances, truth.means


def variance_of_all(z, counts, codes):
    """The variance of the stratified mean over all samples without replacement."""
    parts = []
    for h, n_h in enumerate(counts):
        own = z[codes == h]
        share = len(own) / len(z)
        parts.append([share * np.mean(own[list(s)]) for s in itertools.combinations(range(len(own)), n_h)])
    return np.var([sum(found) for found in itertools.product(*parts)])


def same(value):
    return pytest.approx(value, rel=1e-12, abs=1e-15)


def test_fogliato_3_4_and_8_are_the_variances_over_all_samples():
    one, residual = np.zeros(8, int), Z - PROXY
    sizes, variances, _ = moments()
    _, residual_variances, _ = moments(residual)

    assert formulas.simple_random(Z.var(ddof=1), 3, 8) == same(variance_of_all(Z, [3], one))
    assert formulas.proportional(sizes, variances, 4) == same(variance_of_all(Z, [2, 2], CODES))
    assert formulas.proportional(sizes, residual_variances, 4) == same(
        variance_of_all(residual, [2, 2], CODES)
    )
    assert formulas.stratified(sizes, variances, [3, 1]) == same(variance_of_all(Z, [3, 1], CODES))
    # Eq. 8 is exact up to (N − 1)/N, and its form in strata, all of four units, up to (N_h − 1)/N_h.
    assert formulas.difference(Z, PROXY, 3) * 8 / 7 == same(variance_of_all(residual, [3], one))
    assert formulas.difference(Z, PROXY, 4, strata=CODES) * 4 / 3 == same(
        variance_of_all(residual, [2, 2], CODES)
    )
    assert formulas.proportional_from_proxy(Z, PROXY, CODES, 4) * 4 / 3 == same(
        variance_of_all(Z, [2, 2], CODES)
    )


def test_fogliato_5_is_the_least_variance_over_all_samples_and_allocations():
    """S_h in the ratio 3 : 1, so that Neyman's n_h of four labels are whole: 3 and 1."""
    z = np.r_[0.0, 3.0, 0.0, 3.0, 0.0, 1.0, 0.0, 1.0]
    sizes, variances, _ = moments(z)
    every = {n_1: variance_of_all(z, [n_1, 4 - n_1], CODES) for n_1 in (1, 2, 3)}

    assert formulas.neyman_counts(sizes, variances, 4) == same([3.0, 1.0])
    assert formulas.neyman(sizes, variances, 4) == same(every[3])
    assert min(every, key=every.get) == 3


def test_fogliato_a_1_takes_the_variances_apart():
    sizes, variances, means = moments(Z[:7], CODES[:7])
    whole = formulas.variance_of_strata(sizes, variances, means)
    lost = formulas.proportional(sizes, variances, 3, correction=False) - formulas.neyman(
        sizes, variances, 3, correction=False
    )

    assert whole == same(Z[:7].var(ddof=1))
    assert formulas.gain_of_neyman(sizes, variances, 3) == same(lost)
    # The first part drops 1/N_h: exact for divisors N and N_h.
    divided = variances * (sizes - 1) / sizes
    gain = formulas.simple_random(Z[:7].var(), 3, 7) - formulas.proportional(sizes, divided, 3)
    assert formulas.gain_of_proportional(sizes, means, 3) == same(gain)


def test_fogliato_a_2_is_eq_4_averaged_over_all_outcomes():
    """Outcomes 0 and 1 with mean ẑ: all 2⁸ of them, each with its probability."""
    sizes, proxy_variances, _ = moments(PROXY)
    expected = 0.0
    for z in itertools.product([0.0, 1.0], repeat=8):
        chance = np.prod(np.where(np.array(z) == 1, PROXY, 1 - PROXY))
        expected += chance * formulas.proportional(sizes, moments(np.array(z))[1], 4)

    inner = PROXY * (1 - PROXY)
    assert formulas.expected_proportional(sizes, proxy_variances, inner, 4) == same(expected)


def test_fogliato_9_is_the_ratio_for_a_calibrated_proxy():
    proxy = np.repeat([0.2, 0.7], 500)
    z = np.r_[np.ones(100), np.zeros(400), np.ones(350), np.zeros(150)]
    ratio = formulas.difference(z, proxy, 10) / formulas.simple_random(z.var(), 10, 1000)

    assert formulas.calibrated_ratio(proxy * (1 - proxy), z.var()) == same(ratio)


def test_fogliato_6_holds_where_strata_are_large():
    rng = np.random.default_rng(2)
    codes = np.repeat([0, 1, 2], [4000, 3000, 5000])
    z = (rng.random(12_000) < 0.2 + 0.25 * codes).astype(float)
    sizes, variances, _ = moments(z, codes)
    neyman, even = (rule(sizes, variances, 24) for rule in (formulas.neyman, formulas.proportional))

    assert neyman <= even <= formulas.simple_random(z.var(ddof=1), 24, 12_000)


def test_kumar_raj_2_and_5_are_the_variances_over_all_draws_with_replacement_but_for_the_divisor():
    z = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    codes = np.array([0, 0, 0, 1, 1])
    sizes, _, rates = moments(z, codes)
    variances = formulas.binary_variance(rates, sizes)
    draws = [np.mean(s) for s in itertools.product(z, repeat=3)]
    left, right = ([np.mean(s) for s in itertools.product(z[codes == h], repeat=2)] for h in (0, 1))
    both = np.var([0.6 * a + 0.4 * b for a in left for b in right])

    assert variances == same([z[:3].var(ddof=1), z[3:].var(ddof=1)])
    assert formulas.simple_random(float(formulas.binary_variance(0.6, 5)), 3, np.inf) * 4 / 5 == same(
        np.var(draws)
    )
    assert formulas.stratified(sizes, variances, [2, 2], with_replacement=True) == same(both)
    divided = variances * (sizes - 1) / sizes
    assert formulas.stratified(sizes, divided, [2, 2], correction=False) == same(both)


def test_kumar_raj_7_to_14_follow_from_5():
    rates, sizes, n = np.array([0.55, 0.8, 0.93, 0.99]), np.array([40, 90, 210, 660]), 30
    s2, weights = formulas.binary_variance(rates, sizes), sizes / 1000
    plain = {"correction": False}
    five = [formulas.stratified(sizes, s2, c, **plain) for c in (n * weights, np.full(4, n / 4))]
    best = formulas.neyman(sizes, s2, n, **plain)
    large = rates * (1 - rates)
    overall = weights @ rates

    assert formulas.proportional(sizes, s2, n, **plain) == same(five[0])
    assert five[1] == same(4 * np.sum(weights**2 * s2) / n)
    assert formulas.stratified(sizes, s2, formulas.neyman_counts(sizes, s2, n), **plain) == same(best)
    assert formulas.gain_of_neyman(sizes, s2, n) == same(five[0] - best)
    # Eq. 11 and 12 take S_k² = A_k (1 − A_k).
    gain = overall * (1 - overall) / n - formulas.proportional(sizes, large, n, **plain)
    assert formulas.gain_of_proportional(sizes, rates, n, **plain) == same(gain)
    # Equal allocation loses K Σ (W_k S_k − mean)²/n against the best: nothing where W_k S_k is constant.
    product = weights * np.sqrt(s2)
    assert five[1] - best == same(4 * np.sum((product - product.mean()) ** 2) / n)


def test_kumar_raj_14_strata_of_one_accuracy_cost():
    """The print lacks the factor N_k in its last line."""
    sizes, a, n = np.array([4, 8, 20]), 0.7, 6
    s2 = formulas.binary_variance(np.full(3, a), sizes)
    random = formulas.simple_random(float(formulas.binary_variance(a, 32)), n, np.inf)
    loss = random - formulas.proportional(sizes, s2, n, correction=False)

    assert loss == same(-a * (1 - a) / n * np.sum(sizes * (32 - sizes) / (32 * 31 * (sizes - 1))))
    assert loss < 0


def test_stratppi_theorem_2_is_the_variance_over_all_pairs_of_samples():
    """Two strata, each a distribution on three points (y, f); n_k = 2 labelled, N_k = 3 unlabelled."""
    points = [(np.array([0.0, 1.0, 1.0]), np.array([0.1, 0.6, 0.9])), (Z[3:6], PROXY[3:6])]
    w, lam, parts, v_f, v_residual = np.array([0.3, 0.7]), np.array([0.8, 0.5]), [], [], []
    for (y, f), weight, own in zip(points, w, lam, strict=True):
        labelled = [np.mean((y - own * f)[list(s)]) for s in itertools.product(range(3), repeat=2)]
        unlabelled = [own * np.mean(f[list(s)]) for s in itertools.product(range(3), repeat=3)]
        parts.append(np.var([weight * (a + b) for a in labelled for b in unlabelled]))
        v_f.append(np.var(f))
        v_residual.append(np.var(y - own * f))

    assert formulas.stratified_ppi(w, lam, v_f, v_residual, [2, 2], [3, 3]) == same(sum(parts))


def test_stratppi_17_and_18_are_the_least_of_theorem_2():
    y, f = np.array([0.0, 1.0, 1.0, 0.3]), np.array([0.1, 0.6, 0.9, 0.5])
    cross = np.mean((y - y.mean()) * (f - f.mean()))

    def theorem(lam):
        return formulas.stratified_ppi([1.0], [lam], [np.var(f)], [np.var(y - lam * f)], [20], [60])

    (best,) = formulas.best_lam([cross], [np.var(f)], [20], [60])
    assert all(theorem(best) < theorem(best + step) for step in (-0.01, 0.01))
    assert formulas.best_lam([0.0], [0.0], [1], [1])[0] == 0

    w, v_residual = np.array([0.2, 0.8]), np.array([0.3, 0.05])
    shares = formulas.neyman_counts(w, v_residual, 1)

    def total(share):
        return formulas.stratified_ppi(
            w, [0, 0], [1, 1], v_residual, 100 * np.array([share, 1 - share]), [9, 9]
        )

    assert shares.sum() == same(1.0)
    assert all(total(shares[0]) < total(shares[0] + step) for step in (-0.01, 0.01))


def test_stratppi_theorem_2_is_this_packages_variance_in_other_words():
    """λ' = λ (N_h − n_h)/N_h on the unlabelled units' mean is λ on all units' mean."""
    rng = np.random.default_rng(3)
    sizes, counts = np.array([400, 600]), np.array([30, 50])
    v_z, v_f = rng.random(2) + 0.5, rng.random(2) + 0.5
    covariance = 0.6 * np.sqrt(v_z * v_f)
    lam, unlabelled = covariance / v_f, sizes - counts
    theirs = formulas.best_lam(covariance, v_f, counts, unlabelled)
    residual = v_z - 2 * theirs * covariance + theirs**2 * v_f
    own = v_z - 2 * lam * covariance + lam**2 * v_f
    expected = formulas.stratified(sizes, own, counts) + np.sum((sizes / 1000) ** 2 * v_z / sizes)

    assert theirs == same(lam * unlabelled / sizes)
    assert formulas.stratified_ppi(sizes / 1000, theirs, v_f, residual, counts, unlabelled) == same(expected)


@pytest.mark.parametrize("lam", [0.0, 0.4, 1.0])
def test_stratppi_20_is_the_variance_over_all_outcomes(lam):
    f = PROXY[:4]
    values = np.r_[1 - lam * f, -lam * f]
    chances = np.r_[f, 1 - f] / 4
    variance = chances @ values**2 - (chances @ values) ** 2

    assert formulas.residual_variance(f, f * (1 - f), lam) == same(variance)
    assert formulas.residual_variance(f, f * (1 - f), 0.0) == same(f.mean() * (1 - f.mean()))


def test_the_prints_slips_are_slips():
    """As printed they are not the variances of the tests above; docs/papers/errata.md lists them."""
    _, _, means = moments()
    proxy_means = moments(PROXY)[2]
    within = (PROXY - proxy_means[CODES]) ** 2
    rest = (Z - PROXY) ** 2 + 2 * PROXY * (Z - PROXY)
    printed = np.mean(within + (means**2 - proxy_means**2)[CODES] + rest) / 8
    assert abs(printed / formulas.proportional_from_proxy(Z, PROXY, CODES, 4) - 1) > 0.05  # [F] eq. 7

    a, n_k, n = 0.7, np.array([4, 8, 20]), 6
    lost = formulas.simple_random(float(formulas.binary_variance(a, 32)), n, np.inf) - formulas.proportional(
        n_k, formulas.binary_variance(np.full(3, a), n_k), n, correction=False
    )
    assert lost / (-a * (1 - a) / n * np.sum((32 - n_k) / (32 * 31 * (n_k - 1)))) > 4  # [K] eq. 14

    f = PROXY
    assert np.mean(f * (1 - f) + (1 - f) * (0 - f)) == pytest.approx(
        0
    )  # [S] eq. 62, y − f without its square
    assert np.var(Z + PROXY) > np.var(Z) > np.var(Z - PROXY)  # [S] Algorithm 1, line 11, at λ = 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: formulas.proportional([5, 0], [0.1, 0.1], 3), "a size or n is not positive"),
        (lambda: formulas.proportional([5, 5], [0.1, 0.1], 0), "a size or n is not positive"),
        (lambda: formulas.neyman([5, 5], [0.1, -0.1], 3), "variances hold a negative value"),
        (lambda: formulas.gain_of_proportional([5, 5], [0.1], 3), "entr"),
        (lambda: formulas.neyman_counts([5, 5], [0.0, 0.0], 3), "no stratum varies"),
        (lambda: formulas.binary_variance(1.2, 5), "out of range"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
