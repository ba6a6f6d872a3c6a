from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, LabelError, StratalWarning
from stratal.estimands import ClassReport

TABLE = {
    "id": ["u1", "u2", "u3", "u4", "u5", "u6"],
    "right": [1, 0, 1, 1, 1, 0],
    "language": ["de", "de", "de", "en", "en", "en"],
    "weight": [10, 10, 10, 20, 20, 20],
    "proxy": [0.9, 0.3, 0.8, 0.7, 0.9, 0.4],
}
SIZES = {"de": 30, "en": 60}


def from_labelled(table=TABLE, **options):
    return stratal.Sample.from_labelled(table, value="right", **options)


class TestSources:
    def test_strata_with_sizes_are_a_stratified_sample(self):
        sample, labels = from_labelled(stratum="language", sizes=SIZES)
        result = stratal.estimate(sample, labels)

        assert sample.design.kind == "stratified"
        assert result.value == pytest.approx((30 * 2 / 3 + 60 * 2 / 3) / 90)
        assert [row.name for row in result.strata] == ["de", "en"]

    def test_it_is_the_same_as_drawing_here(self):
        rng = np.random.default_rng(1)
        group = np.repeat(["a", "b", "c"], [100, 200, 300])
        z = (rng.random(600) < 0.8).astype(float)
        population = stratal.Population.from_arrays(proxy=rng.uniform(size=600), groups={"g": group})
        strata = stratal.strata.stratify(population, by="g", method="category")
        design = stratal.designs.Stratified(
            strata=strata, allocation=stratal.strata.allocate(strata, budget=60)
        )
        drawn = design.draw(population, seed=1)
        expected = stratal.estimate(drawn, z[drawn.ids], estimator="horvitz-thompson")

        table = {"z": z[drawn.ids], "g": group[drawn.ids], "id": drawn.ids}
        sample, labels = stratal.Sample.from_labelled(
            table, value="z", stratum="g", sizes={"a": 100, "b": 200, "c": 300}
        )
        found = stratal.estimate(sample, labels)

        assert (expected.value, expected.standard_error) == pytest.approx((found.value, found.standard_error))
        assert list(expected.confidence_interval()) == pytest.approx(list(found.confidence_interval()))

    def test_weights_that_are_equal_within_strata(self):
        sample, labels = from_labelled(weight="weight")

        assert sample.design.kind == "given-weights"
        assert stratal.estimate(sample, labels).value == pytest.approx(60 / 90)
        assert sample.population_size == 90

    def test_inclusion_probabilities_are_one_over_weights(self):
        table = {**TABLE, "pi": [1 / w for w in TABLE["weight"]]}
        one, labels = from_labelled(weight="weight")
        other, _ = from_labelled(table, inclusion_probability="pi")

        first, second = (stratal.estimate(sample, labels) for sample in (one, other))
        assert (first.value, first.standard_error) == pytest.approx((second.value, second.standard_error))

    def test_relative_weights_with_a_population_size(self):
        table = {**TABLE, "weight": [0.5] * 3 + [1.0] * 3}
        sample, labels = from_labelled(table, weight="weight", population_size=90)
        full, _ = from_labelled(weight="weight")

        first, second = (stratal.estimate(entry, labels) for entry in (sample, full))
        assert (first.value, first.standard_error) == pytest.approx((second.value, second.standard_error))

    def test_a_simple_random_sample(self):
        sample, labels = from_labelled(population_size=1000)

        assert sample.design.kind == "simple-random"
        assert stratal.estimate(sample, labels).value == pytest.approx(4 / 6)

    def test_a_proxy_with_the_moments_of_all_other_units(self):
        rng = np.random.default_rng(2)
        proxy, z = rng.uniform(size=300), rng.uniform(size=300)
        population = stratal.Population.from_arrays(proxy=proxy)
        drawn = stratal.designs.SimpleRandom(budget=80).draw(population, seed=1)
        expected = stratal.estimate(drawn, z[drawn.ids], estimator="ppi++")
        rest = np.delete(proxy, drawn.ids)
        moments = {"mean": [rest.mean()], "variance": [rest.var(ddof=1)], "count": [len(rest)]}

        sample, labels = stratal.Sample.from_labelled(
            {"z": z[drawn.ids], "p": proxy[drawn.ids]}, value="z", proxy="p", proxy_moments=moments
        )
        found = stratal.estimate(sample, labels, estimator="ppi++")

        assert sample.population_size == 300
        assert (expected.value, expected.standard_error) == pytest.approx((found.value, found.standard_error))

    def test_a_separate_unlabelled_sample_has_the_superpopulation_as_target(self):
        moments = {"stratum": ["de", "en"], "mean": [0.6, 0.7], "variance": [0.04, 0.05], "count": [500, 70]}
        sample, labels = from_labelled(stratum="language", sizes=SIZES, proxy="proxy", proxy_moments=moments)
        found = {
            name: stratal.estimate(sample, labels, estimator=name)
            for name in ("horvitz-thompson", "difference", "ppi++", "stratppi")
        }

        assert sample.design.kind == "separate-samples"
        for name, result in found.items():
            low, high = result.confidence_interval()
            assert result.target == "superpopulation"
            assert result.estimator == name
            assert 0 <= low < result.value < high <= 1
        residuals = np.array(TABLE["right"]) - np.array(TABLE["proxy"])
        expected = (0.6 + residuals[:3].mean()) / 3 + (0.7 + residuals[3:].mean()) * 2 / 3
        assert expected == pytest.approx(found["difference"].value)


class TestTables:
    def test_files_dataframes_and_mappings_agree(self, tmp_path):
        pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
        path, sizes = tmp_path / "labels.csv", tmp_path / "sizes.csv"
        pandas.DataFrame(TABLE).to_csv(path, index=False)
        sizes.write_text("stratum,size\nde,30\nen,60\n")
        expected, labels = from_labelled(stratum="language", sizes=SIZES)
        value = stratal.estimate(expected, labels).value

        listed = {"stratum": ["de", "en"], "size": [30, 60]}
        for table, given in (
            (str(path), str(sizes)),
            (path, sizes),
            (pandas.DataFrame(TABLE), SIZES),
            (polars.DataFrame(TABLE), listed),
        ):
            sample, labels = from_labelled(table, stratum="language", sizes=given)
            assert sample == expected
            assert value == stratal.estimate(sample, labels).value

    @pytest.mark.parametrize("options", [
        {"stratum": "language", "sizes": SIZES},
        {"weight": "weight"},
        {"population_size": 600},
    ])  # fmt: skip
    def test_the_sample_file_round_trips(self, tmp_path, options):
        sample, labels = from_labelled(**options)
        again = stratal.Sample.read(sample.write(tmp_path / "sample.parquet"))

        assert again == sample
        assert stratal.estimate(again, labels) == stratal.estimate(sample, labels)

    def test_missing_labels_are_nonresponse(self):
        table = {**TABLE, "right": [1, 0, None, 1, float("nan"), 0]}
        sample, labels = from_labelled(table, stratum="language", sizes=SIZES)
        result = stratal.estimate(sample, labels)

        assert result.nonresponse.labelled == 4
        assert any("de: 1 of 3" in note for note in result.notes)

    def test_metrics_and_domains_of_such_a_table(self):
        table = {**TABLE, "answer": ["1", "1", "1", "1", "0", "0"]}
        sample, labels = from_labelled(
            table, stratum="language", sizes=SIZES, predicted="answer", groups=["language"]
        )

        assert stratal.estimate(sample, labels, estimand=ClassReport("recall", classes=[1]))[0].n == 4
        domains = stratal.estimate(sample, labels, by="language")
        assert [row.value for row in domains] == pytest.approx([2 / 3, 2 / 3])


class TestRefusals:
    @pytest.mark.parametrize(("options", "message"), [
        ({}, "from which population the labels were drawn"),
        ({"stratum": "language"}, "from which population the labels were drawn"),
        ({"stratum": "language", "sizes": {"de": 30}}, "stratum 'en' has no size"),
        ({"stratum": "language", "sizes": {"de": 2, "en": 60}}, "more labelled units than its size"),
        ({"stratum": "language", "sizes": {**SIZES, "fr": 5}}, "stratum 'fr' has no labelled unit"),
        ({"stratum": "language", "sizes": {"de": 30.5, "en": 60}}, "whole numbers"),
        ({"stratum": "language", "sizes": {"de": -3, "en": 60}}, "not usable"),
        ({"stratum": "langauge", "sizes": SIZES}, "no column 'langauge'.*'language'"),
        ({"weight": "right"}, "row 2 is not usable"),
        ({"weight": "language"}, "row 1 is not usable"),
        ({"weight": "proxy"}, "the weights sum to no more than the number"),
        ({"inclusion_probability": "weight"}, "a probability above 1"),
        ({"weight": "weight", "stratum": "language", "sizes": SIZES}, "only one of sizes, weight"),
        ({"population_size": 3}, "more labelled units than its size"),
        ({"population_size": 3.5}, "whole number"),
        ({"population_size": 90, "proxy": "proxy"}, "a proxy requires the units that have no label"),
        ({"weight": "weight", "mechanism": "systematic"}, "no such sampling mechanism"),
    ])  # fmt: skip
    def test_what_contradicts_itself_is_refused(self, options, message):
        with pytest.raises(InputError, match=message):
            from_labelled(**options)

    def test_an_id_that_occurs_twice(self):
        with pytest.raises(LabelError, match="id 'u1' occurs twice"):
            from_labelled({**TABLE, "id": ["u1", "u2", "u1", "u4", "u5", "u6"]}, population_size=50)

    def test_such_a_design_draws_nothing(self):
        sample, _ = from_labelled(weight="weight")
        population = stratal.Population.from_arrays(proxy=[0.1, 0.2])

        with pytest.raises(InputError, match="drawn elsewhere"):
            sample.design.draw(population, seed=1)


def test_half_the_labels_missing_warn_but_do_not_shrink_the_estimate():
    """The estimate of ssepy shrank to half when half of the labels were missing."""
    table = {"right": [1.0, None] * 50, "language": ["de"] * 60 + ["en"] * 40}
    sample, labels = from_labelled(table, stratum="language", sizes={"de": 600, "en": 400})

    with pytest.warns(StratalWarning, match="50 of 100 drawn units have no label"):
        result = stratal.estimate(sample, labels)
    assert result.value == 1.0


def test_counts_of_unlabelled_units_are_whole():
    table = {"right": [1, 0, 1, 1], "kind": list("aabb"), "score": [0.9, 0.5, 0.1, 0.2]}
    moments = {"stratum": ["a", "b"], "mean": [0.5, 0.5], "variance": [0.1, 0.1], "count": [3.5, 88]}
    with pytest.raises(InputError, match="whole numbers"):
        stratal.Sample.from_labelled(
            table, value="right", stratum="kind", sizes={"a": 40, "b": 90}, proxy="score",
            proxy_moments=moments,
        )  # fmt: skip


def test_a_column_of_labels_under_another_name_is_to_be_named():
    with pytest.raises(InputError, match=r"no column 'label' .*'human'.*Name the label column: value="):
        stratal.Sample.from_labelled({"id": ["a", "b"], "human": [1, 0]}, value="label", population_size=10)


def test_a_misspelt_keyword_is_told_with_those_that_there_are():
    with pytest.raises(TypeError, match=r"Sample\.from_labelled\(\) got .* 'valeu'; it takes 'value'"):
        stratal.Sample.from_labelled({"right": [1, 0]}, valeu="right")


def test_clusters_of_a_partly_labelled_table_need_what_units_stand_for():
    rows: dict[str, list[object]] = {
        "id": list(range(8)),
        "label": [1, 0, 1, 1, None, None, None, None],
        "school": ["a", "b", "b", "a", "c", "c", "a", "b"],
    }

    sparse = rows | {"label": [1, 0, None, None, None, None, None, None]}
    with pytest.raises(InputError, match="some rows of the labelled clusters") as error:
        stratal.Sample.from_labelled(sparse, value="label", cluster="school")
    assert "2 of 3 clusters ('school')" in str(error.value)
    assert "weight=" in str(error.value)
    whole = rows | {"school": ["a", "a", "b", "b", "c", "c", "d", "d"]}
    assert stratal.Sample.from_labelled(whole, value="label", cluster="school")[0].design.kind == "clusters"
    sample, _ = stratal.Sample.from_labelled(
        {name: values[:4] for name, values in rows.items()},
        value="label",
        cluster="school",
        population_size=8,
    )
    assert sample.design.kind == "given-weights"


@pytest.mark.parametrize("value", ["ann,ben", ["ann", "ben"]])
def test_each_annotator_may_have_a_column(value):
    ann = [1, 0, None, None, 1, None]
    ben = [1, 1, 0, None, None, None]
    table = {"id": list("abcdef"), "ann": ann, "ben": ben}

    sample, labels = stratal.Sample.from_labelled(table, value=value)

    assert sample.ids.tolist() == ["a", "b", "c", "e"]
    assert labels.answered == 6
    assert stratal.estimate(sample, labels).value == pytest.approx((1 + 0.5 + 0 + 1) / 4)
