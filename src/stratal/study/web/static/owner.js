// The owner's page: the figures of `stratal study status --json`, read again every few seconds. It changes nothing.
import { duration, make } from "./parts.js";

const root = document.getElementById("root"), EVERY = 3000;
let folded = new Set();

const number = (value, digits = 3) => (value === null || value === undefined ? "–" : Number(value).toFixed(digits));
const share = (value) => (value === null || value === undefined ? "–" : `${Math.round(100 * value)} %`);
const ends = (interval) => (interval ? `${number(interval[0])} to ${number(interval[1])}` : "–");
const time = (at) => (at ? new Date(at).toLocaleString() : "–");

function table(title, rows, columns) {
  if (!rows.length) return [];
  const head = make("tr", {}, ...Object.keys(columns).map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map((row) => make("tr", {}, ...Object.values(columns).map((get) => make("td", { dir: "auto" }, String(get(row) ?? "–")))));
  const whole = make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: title }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
  const details = make("details", { open: !folded.has(title) }, make("summary", {}, title), whole);
  details.addEventListener("toggle", () => { if (details.open) folded.delete(title); else folded.add(title); });
  return [details];
}

function outcome(found, stop, only) {
  const parts = [make("h2", { dir: "auto" }, only ? found.text : `${found.outcome}: ${found.text}`)];
  const made = found.estimate;
  if (made) parts.push(make("p", { className: "figure" }, make("strong", {}, number(made.estimate)),
    ` (${Math.round(100 * made.confidence_level)} % interval ${ends(made.confidence_interval)} if labelling stops now)`));
  if (found.anytime_interval) parts.push(make("p", {}, `Valid at every moment: ${ends(found.anytime_interval)}`));
  const agreed = found.agreement;
  if (agreed) {
    parts.push(make("p", {}, `Agreement: Krippendorff's α ${number(agreed.alpha, 2)}`));
    parts.push(...table(`Pairs of annotators${only ? "" : `, ${found.outcome}`}`, agreed.pairs, {
      Pair: (row) => `${row.first}, ${row.second}`, Shared: (row) => row.shared, Agreeing: (row) => share(row.agreeing),
      "Cohen's κ": (row) => number(row.kappa, 2) }));
  }
  return make("section", {}, ...parts);
}

function render(found) {
  const answers = found.rounds.reduce((sum, row) => sum + row.answers, 0), wanted = found.rounds.reduce((sum, row) => sum + row.wanted, 0);
  const { stop, disagreements: apart, nonresponse } = found;
  const { seconds_per_item: each, seconds_left: left } = found.time;
  const pace = each === null ? "" : `; ${duration(each)} per item${left ? `, about ${duration(left)} left` : ""}`;
  const lines = [make("h1", { dir: "auto" }, found.question),
    make("p", {}, `${answers} of ${wanted} answers${pace}`), make("progress", { max: Math.max(1, wanted), value: answers, ariaLabel: "Answers given" })];
  if (stop.half_width) lines.push(make("p", {}, stop.enough ? `As narrow as was asked for (±${stop.half_width}): labelling may stop.`
    : `Wanted: ±${stop.half_width}${stop.half_width_now ? `; now ±${number(stop.half_width_now)}` : ""}${stop.more_labels ? `, about ${stop.more_labels} more labelled items` : ""}.`));
  lines.push(...found.notes.map((note) => make("p", { className: "warning", dir: "auto" }, note)));
  root.replaceChildren(...lines,
    ...found.questions.map((one) => outcome(one, stop, found.questions.length === 1)),
    ...table("Annotators", found.annotators, { Name: (row) => row.annotator + (row.set_aside ? " (set aside)" : ""),
      Submitted: (row) => row.submitted, Skipped: (row) => row.skipped,
      "Seconds per item": (row) => number(row.seconds_per_item, 1), Last: (row) => time(row.last) }),
    make("p", {}, `Disagreements: ${apart.open} open, ${apart.decided} decided${apart.shared ? `; ${share(apart.share)} of ${apart.shared} items that several people answered` : ""}.`),
    ...table("Nonresponse by stratum", nonresponse.strata, { Stratum: (row) => row.stratum, Items: (row) => row.items,
      Labelled: (row) => row.labelled, "Only skipped": (row) => row.skipped, Open: (row) => row.open }),
    ...table("Flagged", found.flags, { Item: (row) => row.item, By: (row) => row.annotator, Note: (row) => row.note }),
    ...table("Notes", found.notes_of_annotators, { Item: (row) => row.item, By: (row) => row.annotator, Note: (row) => row.note }),
    make("p", { className: "fresh" }, `As of ${new Date().toLocaleTimeString()}; this page only reads.`));
  document.title = `${answers} of ${wanted} – ${found.question}`;
}

let last = "";
async function look() {
  try {
    const answer = await fetch("api/status", { cache: "no-store", credentials: "omit" });
    const text = await answer.text();
    if (!answer.ok) throw new Error(JSON.parse(text).error?.message ?? `The server says ${answer.status}.`);
    root.querySelector(".banner")?.remove();
    if (text !== last) { last = text; render(JSON.parse(text)); }
  } catch (error) {
    const message = error instanceof TypeError ? "The server does not answer. This page tries again by itself." : error.message;
    root.querySelector(".banner")?.remove();
    root.prepend(make("p", { className: "banner", role: "alert" }, message));
  }
  setTimeout(look, EVERY);
}
look();
