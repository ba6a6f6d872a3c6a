// The page in one file: no server. Every act is in the browser's storage before the next item is shown, and stays
// there; "Download labels" gives the file that `stratal study import` takes. What is downloaded holds all acts, so
// that it may be taken in again and again.
import { annotate } from "./annotate.js";
import { make, outbox } from "./parts.js";

const given = JSON.parse(document.getElementById("study").textContent);
const box = outbox(`stratal-waits:${given.study}:${given.annotator}:`);
const pairs = new Set(given.form.questions.filter((question) => question.kind === "pair").map((question) => question.name));

// Pairs go out as the columns that A and B stand for.
function action({ body }) {
  if (!body.value) return body;
  const { columns } = given.items.find((item) => item.id === body.item);
  const value = Object.entries(body.value).map(([name, one]) => [name, pairs.has(name) ? columns[one] ?? one : one]);
  return { ...body, value: Object.fromEntries(value) };
}

const download = make("button", { type: "button", className: "download" });
download.addEventListener("click", () => {
  const { study, annotator, key } = given;
  const file = { format: "stratal-actions", version: 1, study, annotator, key, actions: box.all().map(action) };
  const address = URL.createObjectURL(new Blob([JSON.stringify(file, null, 1)], { type: "application/json" }));
  make("a", { href: address, download: given.file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
});

function progress(said) {
  download.textContent = `Download labels (${box.all().length})`;
  const answers = [...new Map(said.map((body) => [body.item, body])).values()];
  const times = said.map((body) => body.seconds).filter(Number.isFinite).sort((a, b) => a - b);
  const skipped = answers.filter((body) => body.action === "skip").length, total = given.items.length;
  return {
    submitted: answers.length - skipped, skipped, done: answers.length, total, share: total, disagreements: 0, enough: false,
    seconds_left: times.length ? times[Math.floor(times.length / 2)] * (total - answers.length) : null,
    message: box.lasting() ? "" : "This browser does not store anything: download your labels before you close the page.",
  };
}

annotate(document.getElementById("root"), {
  items: given.items, box, progress,
  state: async () => ({ ...given, adjudicator: false, item: null, progress: progress([]) }),
}, { keys: document, tools: [download] });
