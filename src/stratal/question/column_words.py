"""Names of columns by which their roles are recognised, and words that occur in such names."""

from __future__ import annotations

# Names of a column of ids, in order of preference.
ID_NAMES = ("id", "item_id")

# Names of a column of the models' names, in order of preference.
MODEL_NAMES = ("model", "model_name", "model_id", "system", "system_name")

# Value that states that no column has a role.
NO_COLUMN = "none"


def _word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# The following words occur in names of columns. Names are split at punctuation, capitals and before digits.

# Labels that people gave.
HUMAN_LABEL_WORDS = _word_set(
    """
    human humans gold golden truth groundtruth expert experts manual manually annotation annotated
    annotator adjudicated reviewer review rater
    """
)
# The people who gave the labels: a column `annotator` has their names, not labels.
ANNOTATOR_WORDS = _word_set("annotator expert experts reviewer rater")
# Programs that judge or answer: their columns are never labels of people.
MACHINE_WORDS = _word_set(
    """
    judge llm llmjudge autorater grader grading evaluator critic verifier auto automatic ai gpt claude
    gemini llama mistral qwen deepseek bot machine model classifier pred preds predicted prediction
    predictions
    """
)
# Judges, whose verdicts are compared with labels.
JUDGE_WORDS = _word_set(
    """
    judge llm llmjudge autorater grader evaluator critic verifier auto automatic verdict grade gpt
    claude gemini ai
    """
)
# Models, if each of several columns has the outcomes of one model.
MODEL_WORDS = _word_set(
    """
    gpt claude gemini llama mistral mixtral qwen deepseek phi gemma grok opus sonnet haiku model system
    """
)
# The model's answers.
ANSWER_WORDS = _word_set(
    """
    pred preds predicted prediction predictions output outputs answer response choice completion yhat
    """
)
# Scores, which may be the proxy.
PROXY_WORDS = _word_set(
    """
    proxy confidence conf score scores prob probs probability proba p likelihood certainty rating
    similarity faithfulness relevancy relevance correctness toxicity hallucination precision recall
    coherence fluency helpfulness groundedness quality comet bleurt bertscore chrf bleu
    """
)
# Scores of the answer that the model gave, whichever class it is.
CONFIDENCE_WORDS = _word_set("confidence conf certainty")
# Scores that may be the probabilities of classes.
PROBABILITY_WORDS = _word_set("prob probs probability proba p")
# Complete names of columns of labels. A column without gaps may also have the model's answers.
LABEL_NAMES = _word_set(
    """
    label labels y_true ytrue true_label ground_truth groundtruth gt y
    """
)
# Columns that may have labels, but that programs write as often as people.
WEAK_LABEL_WORDS = _word_set(
    """
    target expected reference actual verdict outcome winner rating feedback thumbs correct
    """
)
# Outcomes in a table with a row per item and model.
OUTCOME_WORDS = _word_set(
    """
    correct acc accuracy score success passed pass match reward right outcome result resolved
    """
)
# Complete names of columns of true classes, such as those in scikit-learn: 0 and 1 in them are classes.
CLASS_NAMES = _word_set("y_true ytrue true_label ground_truth groundtruth gt")
# Labels that mean right and wrong.
CORRECTNESS_WORDS = _word_set(
    """
    correct correctness right accurate accuracy acc passed pass success match
    """
)
# Columns that describe a label but do not contain one.
NO_LABEL_WORDS = _word_set(
    """
    comment comments note notes reason reasoning explanation rationale by at name email id ids count
    agreement confidence status duration url link
    """
)
# Measurements, positions and dates, which do not predict the quality of an answer.
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

# Weights of rows in a sample that was drawn by another program.
WEIGHT_WORDS = _word_set("weight weights wt wgt")

# Numbers of repeated runs, and the questions that are run.
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
