-- The tables of version 1. The journal is authoritative and append-only. The views at the end compute the current
-- answers, decisions and exclusions from it. The table `answer` and the counts in `item`, `annotator` and `tally`
-- store the same for speed; `stratal study check` compares them. Comments must be whole lines that begin with two
-- hyphens: the other lines are stored in the database and compared with this file.
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE round (
    number INTEGER PRIMARY KEY, file TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL
);
-- People. aside: 1 if the labels are excluded. cursor: the search for an item to assign starts at this item.
-- submitted, skipped: numbers of current answers and skips.
CREATE TABLE annotator (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('annotator', 'adjudicator')),
    aside INTEGER NOT NULL DEFAULT 0,
    cursor INTEGER NOT NULL DEFAULT 0,
    submitted INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
-- copies: number of required answers. payload: the shown columns (JSON). wanted: number of required answers that
-- exist in no answer and no assignment yet. answers: number of current answers. apart: 1 if they differ.
-- decision: line of the journal with the adjudicator's decision.
CREATE TABLE item (
    item INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    round INTEGER NOT NULL REFERENCES round,
    stratum INTEGER NOT NULL,
    copies INTEGER NOT NULL CHECK (copies > 0),
    payload TEXT NOT NULL,
    wanted INTEGER NOT NULL,
    answers INTEGER NOT NULL DEFAULT 0,
    apart INTEGER NOT NULL DEFAULT 0,
    decision INTEGER
);
CREATE INDEX item_wanted ON item (item) WHERE wanted > 0;
CREATE INDEX item_apart ON item (item) WHERE apart = 1;
CREATE INDEX item_undecided ON item (item) WHERE apart = 1 AND decision IS NULL;
-- One row for the study. total: required answers. done: existing ones, at most `copies` of each item. undecided:
-- items whose answers differ, without a decision.
CREATE TABLE tally (total INTEGER NOT NULL, done INTEGER NOT NULL, undecided INTEGER NOT NULL);
INSERT INTO tally VALUES (0, 0, 0);
-- Assignments of items to annotators. since: time in seconds. turn: last line of the journal at this time, 0 for an
-- item that is assigned ahead. live: 0 after the answer, or if the item was assigned to somebody else. held: 1 if
-- the item is reserved for a page in one file or a file for another tool.
CREATE TABLE given (
    item INTEGER NOT NULL REFERENCES item,
    annotator TEXT NOT NULL REFERENCES annotator,
    since REAL NOT NULL,
    turn INTEGER NOT NULL,
    live INTEGER NOT NULL,
    held INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (item, annotator)
) WITHOUT ROWID;
CREATE INDEX given_live ON given (annotator, turn) WHERE live = 1;
-- Current answers. seq: line of the journal. status: submitted or skipped.
CREATE TABLE answer (
    item INTEGER NOT NULL REFERENCES item,
    annotator TEXT NOT NULL REFERENCES annotator,
    seq INTEGER NOT NULL,
    status TEXT NOT NULL,
    value TEXT,
    PRIMARY KEY (item, annotator)
) WITHOUT ROWID;
CREATE INDEX answer_seq ON answer (annotator, seq);
-- One line per action; `Entry` in journal.py explains the columns. request: unique text of the client.
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    annotator TEXT NOT NULL,
    action TEXT NOT NULL,
    item INTEGER REFERENCES item,
    value TEXT,
    note TEXT NOT NULL DEFAULT '',
    seconds REAL,
    rubric INTEGER NOT NULL,
    shown TEXT,
    target INTEGER,
    request TEXT,
    hash BLOB NOT NULL
);
CREATE INDEX journal_item ON journal (item, annotator, seq);
CREATE INDEX journal_annotator ON journal (annotator, seq);
CREATE INDEX journal_undone ON journal (target) WHERE action = 'undo';
CREATE UNIQUE INDEX journal_request ON journal (annotator, request) WHERE request IS NOT NULL;
CREATE TRIGGER journal_keeps_rows BEFORE DELETE ON journal
    BEGIN SELECT RAISE(ABORT, 'the journal is only added to'); END;
CREATE TRIGGER journal_keeps_values BEFORE UPDATE ON journal
    BEGIN SELECT RAISE(ABORT, 'the journal is only added to'); END;
-- The last answer or skip of each annotator to each item that was not undone.
CREATE VIEW current AS
    SELECT seq, at, annotator, item, CASE action WHEN 'skip' THEN 'skipped' ELSE 'submitted' END AS status,
        value, note, seconds, rubric, shown
    FROM journal AS said
    WHERE action IN ('submit', 'change', 'skip')
        AND NOT EXISTS (SELECT 1 FROM journal AS u WHERE u.action = 'undo' AND u.target = said.seq)
        AND NOT EXISTS (
            SELECT 1 FROM journal AS later
            WHERE later.item = said.item AND later.annotator = said.annotator AND later.seq > said.seq
                AND later.action IN ('submit', 'change', 'skip')
                AND NOT EXISTS (SELECT 1 FROM journal AS u WHERE u.action = 'undo' AND u.target = later.seq)
        );
-- The last decision on each item, unless it was removed.
CREATE VIEW decision AS
    SELECT seq, at, annotator, item, value, note FROM journal AS said
    WHERE action = 'adjudicate' AND seq = (
        SELECT max(seq) FROM journal AS other WHERE other.item = said.item AND other.action = 'adjudicate'
    ) AND value IS NOT NULL;
-- Whether the labels of each person are excluded.
CREATE VIEW standing AS
    SELECT name AS annotator, coalesce((
        SELECT action = 'set-aside' FROM journal AS said
        WHERE said.annotator = name AND action IN ('set-aside', 'take-back') ORDER BY seq DESC LIMIT 1
    ), 0) AS aside FROM annotator;
