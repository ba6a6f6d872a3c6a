"""Published sets, in small files of the same form as their authors' own."""

import numpy as np
import pytest
from papers.files import attributed_qa, chatbot_arena, prediction_files, seahorse
from papers.stratppi_arms import run_arms

from stratal.errors import InputError


def written(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


RATINGS = "system_name,question,answer,attribution,passage,human_rating,auto_ais,nli_score"


def test_attributed_qa_keeps_the_rows_without_a_rating(tmp_path):
    path = written(
        tmp_path / "ratings.csv",
        [
            RATINGS,
            'RTR-1,q1,a,u,"two\nlines, one cell",Y,Y,0.9',
            "RTR-1,q2,a,u,p,N,N,0.2",
            "RTR-1,q3,a,u,p,,Y,0.8",
            "RTR-2,q1,a,u,p,N,N,0.1",
            "Post-4,q1,a,u,p,Y,Y,0.99",
        ],
    )
    found = attributed_qa(path)

    assert found.name == "attributed_qa (RTR-1)"
    assert found.z[:2].tolist() == [1.0, 0.0]
    assert found.labelled.tolist() == [True, True, False]
    assert found.proxy.tolist() == [0.9, 0.2, 0.8]
    assert (found.binary, found.truth) == (True, 0.5)


def test_seahorse_is_one_question_about_one_system(tmp_path):
    head = "\t".join(
        ["gem_id", "worker_lang", "summary", "model", *(f"question{i}" for i in range(1, 7)), "judge"]
    )
    row = 'xlsum-1\ten-US\tA "quote.\t{model}\tYes\tYes\tYes\t{answer}\tYes\tYes\t{judge}'
    path = written(
        tmp_path / "test.tsv",
        [
            head,
            row.format(model="mt5_xxl", answer="Yes", judge="0.8"),
            row.format(model="mt5_xxl", answer="No", judge="0.3"),
            row.format(model="mt5_xxl", answer="", judge="0.4"),
            row.format(model="mt5_xxl", answer="Yes", judge=""),
            row.format(model="t5_base", answer="Yes", judge="0.9"),
        ],
    )
    found = seahorse(path)

    assert found.z[:2].tolist() == [1.0, 0.0]
    assert found.labelled.tolist() == [True, True, False]
    written(path, [head.removesuffix("\tjudge"), "a\ten-US\tb\tmt5_xxl\tYes\tYes\tYes\tYes\tYes\tYes"])
    with pytest.raises(InputError, match="has no column 'judge'"):
        seahorse(path)


ARENA = "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie,judge"


def test_chatbot_arena_turns_rows_to_one_side(tmp_path):
    path = written(
        tmp_path / "train.csv",
        [
            ARENA,
            "1,gpt-4-1106-preview,claude-2.1,p,a,b,1,0,0,0.75",
            "2,claude-2.1,gpt-4-1106-preview,p,a,b,1,0,0,0.25",
            "3,claude-2.1,gpt-4-1106-preview,p,a,b,0,0,1,0.5",
            "4,gpt-4-1106-preview,claude-2.1,p,a,b,,,,0.5",
            "5,gpt-4-1106-preview,llama,p,a,b,1,0,0,0.9",
        ],
    )
    found = chatbot_arena(path)

    assert found.z[:3].tolist() == [1.0, 0.0, 0.5]
    assert found.proxy.tolist() == [0.75, 0.75, 0.5, 0.5]
    assert found.labelled.tolist() == [True, True, True, False]
    assert found.win_rate
    assert chatbot_arena(path, ("nobody", "else")) is None


def test_a_directory_of_published_sets_is_read_whole(tmp_path):
    np.savez(tmp_path / "forest.npz", Y=np.array([0.0, 1.0, np.nan]), Yhat=np.array([0.1, 0.7, 0.5]))
    np.savez(tmp_path / "other.npz", X=np.arange(3))
    np.savez(tmp_path / "incomes.npz", Y=np.array([10.0, 20.0]), Yhat=np.array([11.0, 18.0]))
    written(tmp_path / "ratings.csv", [RATINGS, "RTR-1,q1,a,u,p,Y,Y,0.9"])
    written(tmp_path / "unrelated.csv", ["a,b", "1,2"])
    found = {entry.name: entry for entry in prediction_files(tmp_path)}

    assert set(found) == {"forest", "attributed_qa (RTR-1)"}
    assert found["forest"].labelled.tolist() == [True, True, False]


def test_rows_without_z_are_kept_as_unlabelled(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"z": [1.0, None, 0.0], "proxy": [0.9, 0.4, None]})
    pq.write_table(table, tmp_path / "part.parquet")
    (found,) = prediction_files(tmp_path)

    assert found.labelled.tolist() == [True, False]
    assert found.proxy.tolist() == [0.9, 0.4]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([RATINGS, "RTR-1,q,a,u,p,Y,Y,high"], "column 'nli_score' has a value that is no number"),
        ([RATINGS, "RTR-1,q,a,u,p,,Y,0.5"], "no row has a human rating"),
        (["question,answer", "q,a"], "is not AttributedQA's table"),
    ],
)
def test_tables_that_cannot_be_used_are_named(tmp_path, lines, message):
    with pytest.raises(InputError, match=f"ratings.csv.*{message}"):
        prediction_files_of(written(tmp_path / "ratings.csv", lines))


def prediction_files_of(path):
    return prediction_files(path.parent)


def test_arrays_of_two_lengths_are_refused(tmp_path):
    np.savez(tmp_path / "forest.npz", Y=np.zeros(3), Yhat=np.zeros(2))
    with pytest.raises(InputError, match="differ in length"):
        prediction_files(tmp_path)


def partly_labelled(size, known, seed):
    from papers.loaders import Predictions

    rng = np.random.default_rng(seed)
    proxy = rng.beta(2, 2, size)
    z = (rng.random(size) < proxy).astype(float)
    z[rng.permutation(size)[known:]] = np.nan
    return Predictions(name="part", z=z, proxy=proxy)


def test_unlabelled_rows_narrow_the_interval_and_coverage_is_of_the_labels_mean():
    """With λ known to be about 1, proxies of 4,000 rows leave little but the residual's variance."""
    found = partly_labelled(4000, 1000, 1)
    run = run_arms(found, replicates=400, seed=1, chosen=("classical", "PPI++"))
    labels = found.labelled
    correlation = np.corrcoef(found.z[labels], found.proxy[labels])[0, 1]
    expected = 100 * (1 - np.sqrt(1 - correlation**2 * (1 - 100 / 4000)))

    assert run.budgets[-1] == 300
    assert run.reductions()["PPI++"][1] == pytest.approx(expected, abs=1.5)
    assert np.all(run.series["PPI++"]["coverage"] > 0.92)


def test_arms_cover_the_distributions_mean_at_their_level():
    """The interval is for the distribution: redrawing the population must cost coverage nothing."""
    rng = np.random.default_rng(2)
    proxy = rng.random(800)
    from papers.loaders import Predictions

    found = Predictions(name="whole", z=(rng.random(800) < proxy).astype(float), proxy=proxy)
    run = run_arms(
        found,
        replicates=2000,
        seed=3,
        chosen=("classical", "PPI++", "StratPPI proportional", "StratPPI, W_h estimated"),
    )
    at = run.budgets.index(200)
    for name, rows in run.series.items():
        assert rows["coverage"][at] == pytest.approx(0.95, abs=4 * 0.0049 + 0.01), name
    wider = run.series["StratPPI, W_h estimated"]["width"] / run.series["StratPPI proportional"]["width"]
    assert np.all(wider > 1.02)
