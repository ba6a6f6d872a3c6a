// The page in one file: no server. Every action is written to the browser's storage before the next item is
// shown; "Download labels" gives the file that `stratal study import` takes. What is downloaded holds all actions, so
// that it may be taken in again and again.
import { annotate } from "./annotate.js";

const given = JSON.parse(document.getElementById("study").textContent);
const name = `stratal-offline:${given.study}:${given.annotator}`;
const pairs = new Set(given.form.questions.filter((question) => question.kind === "pair").map((question) => question.name));
const items = new Map(given.items.map((item) => [item.id, item]));
let lasting = true, memory = [];

function load() {
  if (!lasting) return memory;
  try {
    return JSON.parse(localStorage.getItem(name) ?? "[]");
  } catch {
    lasting = false;
    return memory;
  }
}

function save(log) {
  if (!lasting) { memory = log; return; }
  try {
    localStorage.setItem(name, JSON.stringify(log));
    memory = log;
  } catch {
    throw new Error("This browser could not save this: its storage is full. Download your labels now.");
  }
}

// What the actions so far come to: the answers in their order, the items taken back, the flags.
function replay(log) {
  const answers = new Map(), flags = new Set(), said = [], again = [];
  log.forEach((entry, seq) => {
    const { action, item } = entry;
    if (action === "submit" || action === "skip") {
      said.push([item, answers.get(item)]);
      answers.delete(item);
      answers.set(item, { status: action === "skip" ? "skipped" : "submitted", value: entry.shown ?? null,
        note: entry.note ?? "", seq, seconds: entry.seconds });
      if (again.includes(item)) again.splice(again.indexOf(item), 1);
    } else if (action === "undo") {
      const [last, before] = said.pop();
      answers.delete(last);
      if (before) answers.set(last, before);
      again.push(last);
    } else if (action === "flag") flags.add(item);
    else if (action === "unflag") flags.delete(item);
  });
  return { answers, flags, said, again };
}

function view(id, now) {
  const item = items.get(id);
  return item && { ...item, answer: now.answers.get(id) ?? null, flagged: now.flags.has(id) };
}

function live(now) {
  const last = now.again.filter((id) => items.has(id)).at(-1);
  return view(last ?? given.items.find((item) => !now.answers.has(item.id))?.id, now) ?? null;
}

function progress(now) {
  const mine = [...now.answers].filter(([id]) => items.has(id)).map(([, answer]) => answer);
  const times = mine.map((answer) => answer.seconds).filter(Number.isFinite).sort((a, b) => a - b);
  const skipped = mine.filter((answer) => answer.status === "skipped").length;
  const open = items.size - mine.length;
  return {
    submitted: mine.length - skipped, skipped, done: mine.length, total: items.size, share: items.size, disagreements: 0,
    seconds_left: times.length ? times[Math.floor(times.length / 2)] * open : null, enough: false,
    message: lasting ? "" : "This browser keeps nothing: download your labels before you close the page.",
  };
}

const here = (now) => ({ item: live(now), ahead: [], progress: progress(now) });

function refuse(text) {
  throw Object.assign(new Error(text), { kind: "refused" });
}

const download = document.createElement("button");
download.type = "button";
download.className = "download";
const count = () => { download.textContent = `Download labels (${load().length})`; };
download.addEventListener("click", () => {
  const { study, annotator } = given;
  const actions = load().map(({ shown, ...entry }) => entry);
  const file = { format: "stratal-actions", version: 1, study, annotator, actions };
  const address = URL.createObjectURL(new Blob([JSON.stringify(file, null, 1)], { type: "application/json" }));
  const link = Object.assign(document.createElement("a"), { href: address, download: given.file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
});

const column = (item, side) => items.get(item).columns[side] ?? side;

const transport = {
  local: true,
  state: async () => ({ study: given.study, annotator: given.annotator, name: given.name, form: given.form,
    adjudicator: false, ...here(replay(load())) }),
  item: async (id) => ({ item: view(id, replay(load())) ?? refuse("This item is not in this file.") }),
  trail: async (before = Infinity) => ({ answers: [...replay(load()).answers]
    .filter(([id, answer]) => items.has(id) && answer.seq < before)
    .map(([item, answer]) => ({ item, seq: answer.seq })).sort((a, b) => b.seq - a.seq) }),
  disagreements: async () => ({ disagreements: [] }),
  act: async (body) => {
    const log = load();
    if (body.action === "undo" && !replay(log).said.length) refuse("There is nothing to take back.");
    if (!log.some((entry) => entry.request === body.request)) {
      const entry = { ...body, at: new Date().toISOString() };
      if (body.value !== undefined) {
        entry.shown = body.value;
        entry.value = Object.fromEntries(Object.entries(body.value).map(([name, value]) =>
          [name, pairs.has(name) ? column(body.item, value) : value]));
      }
      save([...log, entry]);
    }
    count();
    return here(replay(load()));
  },
};

count();
addEventListener("beforeunload", (event) => { if (!lasting && memory.length) event.preventDefault(); });
annotate(document.getElementById("root"), transport, { keys: document, tools: [download] });
