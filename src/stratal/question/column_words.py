"""Names of columns by which their roles are recognised, and words that occur in such names."""

from __future__ import annotations

# Names of a column of ids, in order of preference.
ID_NAMES = ("id", "item_id")

# Names of a column of the models' names, in order of preference.
MODEL_NAMES = ("model", "model_name", "model_id", "system", "system_name")

# Value that states that no column has a role.
NO_COLUMN = "none"


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words in the names of columns. A name is split at punctuation, at capitals and before digits.
# Words of people's labels.
HUMAN_WORDS = _word_set(
    """
    human humans gold golden truth groundtruth expert experts manual manually annotation annotated
    annotator adjudicated reviewer review rater
    """
)
# Words of the people themselves: a column `annotator` has names, not labels.
PEOPLE_WORDS = _word_set("annotator expert experts reviewer rater")
# Words of programs that judge or answer: their columns are never people's labels.
MACHINE_WORDS = _word_set(
    """
    judge llm llmjudge autorater grader grading evaluator critic verifier auto automatic ai gpt claude
    gemini llama mistral qwen deepseek bot machine model classifier pred preds predicted prediction
    predictions
    """
)
# Words of judges, whose verdicts are compared with labels.
JUDGE_WORDS = _word_set(
    """
    judge llm llmjudge autorater grader evaluator critic verifier auto automatic verdict grade gpt
    claude gemini ai
    """
)
# Words of models, whose columns have the outcomes of several models.
MODEL_WORDS = _word_set(
    """
    gpt claude gemini llama mistral mixtral qwen deepseek phi gemma grok opus sonnet haiku model system
    """
)
# Words of the model's answers.
ANSWER_WORDS = _word_set(
    """
    pred preds predicted prediction predictions output outputs answer response choice completion yhat
    """
)
# Words of scores, which may be the proxy.
PROXY_WORDS = _word_set(
    """
    proxy confidence conf score scores prob probs probability proba p likelihood certainty rating
    similarity faithfulness relevancy relevance correctness toxicity hallucination precision recall
    coherence fluency helpfulness groundedness quality comet bleurt bertscore chrf bleu
    """
)
# Words of scores of whichever answer was given.
CONFIDENCE_WORDS = _word_set("confidence conf certainty")
# Scores with such names may be the probabilities of classes.
PROBABILITY_WORDS = _word_set("prob probs probability proba p")
# Names of columns of labels: a label in every row may also be the model's answer.
LABEL_NAMES = _word_set(
    """
    label labels y_true ytrue true_label ground_truth groundtruth gt y
    """
)
# Words of columns that may be labels, but are as often written by programs.
WEAK_LABEL_WORDS = _word_set(
    """
    target expected reference actual verdict outcome winner rating feedback thumbs correct
    """
)
# Names of outcomes of a benchmark that has a row per item and model.
OUTCOME_WORDS = _word_set(
    """
    correct acc accuracy score success passed pass match reward right outcome result resolved
    """
)
# Names of columns of true classes, as of scikit-learn: 0 and 1 in them are classes.
CLASS_NAMES = _word_set("y_true ytrue true_label ground_truth groundtruth gt")
# Words in names of columns of labels that mean right and wrong.
CORRECTNESS_WORDS = _word_set(
    """
    correct correctness right accurate accuracy acc passed pass success match
    """
)
# Words in names of columns that describe a label but do not contain one.
NO_LABEL_WORDS = _word_set(
    """
    comment comments note notes reason reasoning explanation rationale by at name email id ids count
    agreement confidence status duration url link
    """
)
# Words of measurements, positions and dates, which predict nothing about the quality of an answer.
MEASUREMENT_WORDS = _word_set(
    """
    cost costs price usd eur dollars tokens token latency duration time times ms sec secs seconds
    minutes hours elapsed date datetime timestamp ts created updated modified start end index idx
    position pos rank row number no num nr width height area bbox box lat lon lng latitude
    longitude length len count counts size bytes age year month day week weekday hour version seed step
    epoch run repeat trial temperature line page offset char chars words iscrowd crowd segmentation zip
    postcode phone code salary amount total weight weights stratum cluster inclusion fold split unnamed
    """
)

# Words of the weights of rows in a sample that was drawn elsewhere.
WEIGHT_WORDS = _word_set("weight weights wt wgt")

# Words in names of columns of repeated runs, and of the questions that are run.
RUN_WORDS = _word_set(
    """
    run runs repeat repetition replicate rep trial epoch attempt seed iteration
    """
)
QUESTION_WORDS = _word_set(
    """
    question item task problem prompt doc document example instance sample query
    """
)
