"""Columns made of others: row numbers, a softmax as the proxy of the answer, missing proxies kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import stratal
from stratal.errors import InputError
from stratal.population import Population
from stratal.population.inspection import answer_options, describe_columns, suggested_options
from stratal.population.softmax import class_names


@pytest.fixture
def probabilities():
    return np.random.default_rng(1).dirichlet([2, 1, 1], 200)


@pytest.fixture
def softmax(probabilities, tmp_path):
    """A CSV file of a classifier: ids, four digits of each class's probability, the answer."""
    path = tmp_path / "predictions.csv"
    frame = pd.DataFrame(probabilities.round(4), columns=["p_cat", "p_dog", "p_cow"])
    frame.insert(0, "id", [f"{row:04d}" for row in range(200)])
    frame["answer"] = np.array(["cat", "dog", "cow"])[probabilities.argmax(axis=1)]
    frame.to_csv(path, index=False)
    return path


def values(population, name="confidence"):
    sample = stratal.designs.SimpleRandom(budget=population.size).draw(population, seed=1)
    order = np.argsort(sample.ids)
    return sample.proxies[order, sample.proxy_names.index(name)], sample.groups, order


@pytest.mark.parametrize("keywords", [{"softmax": "p_*"}, {"proxy": ["p_cat", "p_dog", "p_cow"]}])
def test_a_softmax_becomes_the_probability_of_the_answer(softmax, probabilities, keywords):
    population = Population.read(softmax, **keywords)

    confidence, groups, order = values(population)

    assert population.proxy_names == ("confidence",)
    assert population.roles.answer == "predicted_class"
    assert np.allclose(confidence, probabilities.max(axis=1), atol=1e-4)
    told = np.array(["cat", "dog", "cow"])[probabilities.round(4).argmax(axis=1)]
    assert np.mean(groups["predicted_class"][order] == told) > 0.99
    assert "are a softmax" in population.notes[0]


def test_the_answer_that_is_named_is_the_one_whose_probability_counts(softmax, probabilities):
    frame = pd.read_csv(softmax, dtype={"id": str})
    frame["answer"] = "dog"
    population = Population.from_table(frame, softmax="p_*", predicted="answer")

    assert np.allclose(values(population)[0], probabilities[:, 1], atol=1e-4)
    assert population.roles.answer == "answer"


def test_answers_that_are_no_class_of_the_columns_take_the_most_probable(softmax, probabilities):
    frame = pd.read_csv(softmax)
    frame["answer"] = "a horse"
    population = Population.from_table(frame, softmax="p_*", predicted="answer")

    assert np.allclose(values(population)[0], probabilities.max(axis=1), atol=1e-4)
    assert "are other classes" in population.notes[0]


def test_two_judges_are_no_softmax():
    frame = pd.DataFrame({"id": range(4), "a": [0.1, 0.9, 0.5, 0.4], "b": [0.2, 0.9, 0.5, 0.6]})

    assert Population.from_table(frame, proxy=["a", "b"]).proxy_names == ("a", "b")


@pytest.mark.parametrize("columns", ["a*", "a1"])
def test_columns_that_are_no_softmax_are_refused(columns):
    frame = pd.DataFrame({"id": range(2), "a1": [3.0, 1.0], "a2": [-2.0, 0.5]})

    with pytest.raises(InputError, match=r"are not a softmax.*apply a softmax first"):
        Population.from_table(frame, softmax=columns)


def test_a_softmax_with_a_missing_value_is_refused_by_its_unit():
    frame = pd.DataFrame({"id": ["a", "b"], "p0": [0.4, None], "p1": [0.6, 0.5]})

    with pytest.raises(InputError, match=r"column 'confidence' holds 1 .*id 'b'"):
        Population.from_table(frame, softmax="p*")


def test_inspection_says_so_and_names_the_option(softmax):
    found = describe_columns(softmax)

    assert found["softmax"] == "p_*"
    assert "a softmax" in found["notes"][0]
    assert suggested_options(found, None, None) == ["--id", "id", "--softmax", "p_*"]


def test_a_softmax_of_bare_class_names_is_found(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("id,score,cat,dog\na,0.3,0.2,0.8\nb,0.4,0.9,0.1\n")

    assert describe_columns(path)["softmax"] is None  # together with the score they do not add up to 1
    path.write_text("id,cat,dog\na,0.2,0.8\nb,0.9,0.1\n")
    assert describe_columns(path)["softmax"] == "cat,dog"


def test_class_names_do_not_lose_letters():
    assert class_names(["prob.good", "prob.great"]) == ["good", "great"]
    assert class_names(["p", "p1"]) == ["p", "p1"]


# ---- row numbers


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "xlsx", "jsonl"])
def test_rows_are_numbered_from_1_in_every_format(tmp_path, kind):
    path = tmp_path / f"rows.{kind}"
    frame = pd.DataFrame({"score": [0.1, 0.2, 0.3]})
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif kind == "xlsx":
        frame.to_excel(path, index=False)
    else:
        getattr(frame, f"to_{kind}")(path)

    population = Population.read(path, id="row", proxy="score")

    assert np.allclose(values(population, "score")[0], [0.1, 0.2, 0.3])
    assert population.id_name == "row"


def test_a_column_called_row_is_a_column():
    frame = pd.DataFrame({"row": ["x", "y"], "score": [0.1, 0.2]})

    sample = stratal.designs.SimpleRandom(budget=2).draw(
        Population.from_table(frame, id="row", proxy="score"), seed=1
    )

    assert sorted(sample.ids) == ["x", "y"]


def test_a_table_on_a_connection_has_no_row_numbers():
    import ibis

    table = ibis.duckdb.connect().create_table("rows", schema={"score": "float64"})

    with pytest.raises(InputError, match="no order"):
        Population.from_table(table, id="row", proxy="score")


# ---- missing proxies


@pytest.fixture
def holes(tmp_path):
    """300 units, every tenth without a score, written in four ways."""
    path = tmp_path / "scores.csv"
    words = ["", "NaN", "NA", "null"]
    scores = np.random.default_rng(2).beta(4, 1, 300).round(3)
    rows = [f"u{n},{words[n // 10 % 4] if n % 10 == 0 else scores[n]}" for n in range(300)]
    path.write_text("\n".join(["id,score", *rows]) + "\n")
    return path


def test_missing_proxies_are_refused_with_the_remedy(holes):
    with pytest.raises(InputError, match="missing='own-stratum'"):
        Population.read(holes, proxy="score")


def test_missing_proxies_are_a_stratum_of_their_own(holes):
    population = Population.read(holes, proxy="score", missing="own-stratum")
    plan = stratal.plan(population, budget=60)

    missing = [h for h, name in enumerate(plan.strata.names) if "missing" in name]

    assert population.size == 300
    assert [int(plan.strata.sizes[h]) for h in missing] == [30]
    assert np.isclose(plan.strata.conditional_variances[missing[0]], 0.25)  # the worst case
    assert any("30 units without a proxy" in note for note in plan.notes)


def test_no_lambda_moves_the_units_without_a_proxy(holes):
    population = Population.read(holes, proxy="score", missing="own-stratum")
    sample = stratal.plan(population, budget=80).draw(seed=3)
    labels = {unit: float(row % 4 > 0) for row, unit in enumerate(sample.ids.tolist())}
    own = next(h for h, name in enumerate(sample.design.stratum_names) if "missing" in name)

    covariances = sample.summary.proxy_covariances[own]
    raw = stratal.estimate(sample, labels, estimator="horvitz-thompson").value
    moved = stratal.estimate(sample, labels, estimator="difference").value
    inside = sample.stratum == own

    assert np.allclose(covariances, 0)
    assert np.allclose(sample.proxies[inside], sample.summary.proxy_means[own])
    assert raw != moved


def test_numbers_that_are_none_stay_an_error(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("id,score\na,0.5\nb,high\nc,\n")

    with pytest.raises(InputError, match=r"1 value that is not a number \(first: 'high'"):
        Population.read(path, proxy="score", missing="own-stratum")


def test_nothing_is_added_where_nothing_is_missing():
    frame = pd.DataFrame({"id": range(3), "score": [0.1, 0.2, 0.3]})
    population = Population.from_table(frame, proxy="score", missing="own-stratum")

    assert population.group_names == ()
    assert population.missing_proxy_group is None


def test_what_becomes_of_missing_proxies_is_one_of_two():
    with pytest.raises(InputError, match="refuse, own-stratum"):
        Population.from_table(pd.DataFrame({"id": [1]}), missing="drop")


# ---- scores on another scale than the labels


@pytest.mark.parametrize(("low", "high"), [(0, 100), (1, 5)])
def test_scores_with_pass_or_fail_labels_only_order_and_are_planned_at_the_worst(low, high):
    frame = pd.DataFrame({"id": range(400), "score": np.linspace(low, high, 400)})
    population = Population.from_table(frame, proxy="score", label="pass/fail")
    plan = stratal.plan(population, budget=100)

    assert not population.proxies[0].scaled
    assert population.proxies[0].bounds == (0, 1)
    assert plan.expected_half_width is None
    worst = 1.96 * 0.5 / 10 * np.sqrt(1 - 100 / 400)
    assert plan.worst_half_width == pytest.approx(worst, rel=0.02)
    assert "If labels are 0 or 1: 95% interval at most" in str(plan)
    assert plan.to_dict()["worst_bounds"] == [0, 1]
    assert stratal.plan(population, half_width=worst * 1.02).budget <= 100


def test_labels_on_the_scores_scale_are_declared():
    frame = pd.DataFrame({"id": range(50), "score": np.linspace(1, 5, 50)})

    assert Population.from_table(frame, proxy="score", label="1,5").proxies[0].scaled
    assert not Population.from_table(frame, proxy="score", label="pass/fail", bounds=(1, 5)).proxies[0].scaled


def test_a_score_that_looks_like_percent_is_asked_about():
    frame = pd.DataFrame({"id": range(50), "score": np.linspace(3, 97, 50)})
    plan = stratal.plan(Population.from_table(frame, proxy="score"), budget=20)

    assert any("--bounds 0,100" in note and "--label pass/fail" in note for note in plan.notes)
    assert plan.worst_half_width is not None


@pytest.mark.parametrize("given", ["pass", "5,1", 3])
def test_what_annotators_will_say_has_two_forms(given):
    with pytest.raises(InputError, match="pass/fail, or LOW,HIGH"):
        Population.from_table(pd.DataFrame({"id": [1], "s": [2.0]}), proxy="s", label=given)


# ---- other models' answers


@pytest.fixture
def pool():
    """300 units: four models' answers, of which one is missing, a copy of one model, and a score."""
    rng = np.random.default_rng(4)
    truth = rng.choice(["cat", "dog", "cow"], 300)
    drawn = {model: rng.choice(["cat", "dog", "cow"], 300) for model in "abcd"}
    frame = pd.DataFrame({"id": [f"u{row}" for row in range(300)], "score": rng.random(300).round(3)})
    for model, share in zip("abcd", (0.6, 0.9, 0.8, 0.7), strict=True):
        frame[f"answer_{model}"] = np.where(rng.random(300) < share, truth, drawn[model])
    frame["answer_e"] = frame["answer_d"]
    frame.loc[5, "answer_b"] = None
    return frame


ANSWERS = {"predicted": "answer_a", "answers": "answer_*"}


def test_answers_are_the_same_proxy_by_every_way(pool, tmp_path):
    import ibis

    pool.to_csv(tmp_path / "p.csv", index=False)
    pool.to_parquet(tmp_path / "p.parquet")
    connection = ibis.duckdb.connect()
    peers = {f"answer_{model}": pool[f"answer_{model}"] for model in "bcde"}
    ids, own = pool["id"].tolist(), pool["answer_a"]
    populations = [
        Population.from_arrays(
            proxy=stratal.proxy.peer_agreement(own, peers, ids=ids),
            ids=ids,
            groups={"answer_a": own},
            predicted="answer_a",
        ),
        Population.read(tmp_path / "p.csv", **ANSWERS),
        Population.read(tmp_path / "p.parquet", **ANSWERS),
        Population.from_table(pool.iloc[::-1].reset_index(drop=True), **ANSWERS),
        Population.from_table(connection.read_parquet(tmp_path / "p.parquet"), **ANSWERS),
    ]

    assert {population.proxy_names for population in populations} == {("peer_agreement",)}
    assert len({str(population.digest(3)) for population in populations}) == 1
    assert len({tuple(values(population, "peer_agreement")[0]) for population in populations}) == 1
    assert "4 of 4 have a positive weight (2 near copies)" in populations[1].notes[0]


def test_a_population_on_a_connection_has_the_digest_of_its_answers(pool):
    changed = pool.copy()
    changed["answer_b"] = np.roll(changed["answer_b"], 1)

    digests = [str(Population.from_table(frame, **ANSWERS).digest(3)) for frame in (pool, changed)]

    assert digests[0] != digests[1]


def test_each_of_several_models_has_an_agreement_of_its_own(pool):
    names = ["peer_agreement_answer_b", "peer_agreement_answer_c"]
    pool = pool.fillna("none")
    both = Population.from_table(pool, proxy=[*names, "score"], answers="answer_*")
    one = Population.from_table(pool, predicted="answer_c", answers="answer_*")

    assert both.proxy_names == (*names, "score")
    assert np.array_equal(values(both, names[1])[0], values(one, "peer_agreement")[0])


@pytest.mark.parametrize(
    ("kind", "spellings"),
    [
        ("text", ["The Eiffel Tower!", "eiffel  tower", " the EIFFEL tower.", "a Eiffel-tower"]),
        ("number", ["so 1,234", "It is 1234.0 dollars.", "1 + 1233 = 1234", "#### 1234"]),
    ],
)
def test_free_texts_are_written_alike_where_that_is_wanted(pool, kind, spellings):
    other = {"text": "Louvre", "number": "7"}[kind]
    right = pool.filter(like="answer_").eq(pool["answer_a"], axis=0)
    frame = pd.DataFrame({"id": pool["id"]})
    for at, name in enumerate(right):
        frame[name] = np.where(right[name], spellings[at % 3], f"{other}, or {at}")
    frame["answer_f"] = np.where(right["answer_b"], spellings[3], "9")
    if kind == "text":
        frame["answer_f"] = frame["answer_f"].str.replace("-", " ")
    plain = right.astype(str).assign(id=pool["id"], answer_f=right["answer_b"].astype(str))
    for at, name in enumerate(right):  # wrong answers differ by model, as above
        plain.loc[~right[name], name] = f"no {at}"
    plain.loc[~right["answer_b"], "answer_f"] = "no 9"

    alike = Population.from_table(frame, predicted="answer_a", answers=f"{kind}:answer_*")
    known = Population.from_table(plain, **ANSWERS)

    assert np.array_equal(values(alike, "peer_agreement")[0], values(known, "peer_agreement")[0])


def test_an_agreement_is_on_the_scale_of_right_and_wrong(pool):
    ratings = Population.from_table(pool, **ANSWERS, bounds=(1, 5)).proxies[0]

    assert not ratings.scaled
    assert Population.from_table(pool, **ANSWERS).proxies[0].bounds == (0.0, 1.0)


def test_the_answer_of_a_softmax_is_compared_too(pool, softmax):
    frame = pd.read_csv(softmax)
    for model in "bcd":
        frame[f"other_{model}"] = frame["answer"]
    frame.loc[frame.index % 5 == 0, "other_b"] = "cat"
    frame.loc[frame.index % 5 == 1, "other_c"] = "dog"
    frame.loc[frame.index % 5 == 2, "other_d"] = "cow"

    population = Population.from_table(frame, softmax="p_*", answers="other_*")

    assert population.proxy_names == ("peer_agreement", "confidence")
    assert population.roles.answer == "predicted_class"


def test_models_that_guess_make_no_proxy():
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({f"answer_{model}": rng.choice(["a", "b"], 400) for model in range(8)})
    frame["id"] = range(400)

    population = Population.from_table(frame, predicted="answer_0", answers="answer_*")

    assert population.proxy_names == ()
    assert "no other model agrees" in population.notes[0]
    assert stratal.plan(population, budget=50).recommended.design == "simple-random"


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"answers": "answer_*"}, "of the evaluated model, but no column"),
        ({"answers": "answer_a", "predicted": "answer_a"}, "names only the evaluated model"),
        ({"proxy": "peer_agreement"}, "computed from other models' answers: name their columns"),
        ({"answers": "reply_*", "predicted": "answer_a"}, "no column matches answers"),
        ({"answers": "answer_*", "proxy": ["score", "id"]}, "of the evaluated model, but no column"),
    ],
)
def test_answers_that_cannot_be_compared_are_refused(pool, keywords, message):
    with pytest.raises(InputError, match=message):
        Population.from_table(pool.assign(id=range(300)), **keywords)


def test_a_column_that_is_called_like_the_agreement_is_refused(pool):
    with pytest.raises(InputError, match="already called 'peer_agreement'"):
        Population.from_table(pool.assign(peer_agreement=0.5), **ANSWERS)


def test_inspection_offers_the_answers(pool, tmp_path):
    pool.to_csv(tmp_path / "p.csv", index=False)
    pool[["id", "answer_a", "answer_b"]].to_csv(tmp_path / "two.csv", index=False)
    found = describe_columns(tmp_path / "p.csv")

    assert answer_options(found) == ["--predicted", "answer_a", "--answers", "answer_*"]
    assert answer_options(found, "answer_b") == ["--answers", "answer_*"]
    assert suggested_options(found, None, None) == ["--id", "id", "--proxy", "score"]
    assert "5 columns contain answers" in found["notes"][0]
    assert answer_options(describe_columns(tmp_path / "two.csv")) == []


# ---- the same from arrays


def test_arrays_take_the_kind_of_labels():
    info = Population.from_arrays(proxy=[20.0, 80.0], label="pass/fail").proxies[0]

    assert (info.scaled, info.bounds) == (False, (0, 1))
