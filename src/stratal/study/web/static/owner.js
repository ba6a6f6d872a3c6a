// The owner's page: the figures of `stratal study status --json`, read again every few seconds. It changes nothing.
import { duration, make } from "./parts.js";

const root = document.getElementById("root"), EVERY = 3000;
let folded = new Set();

const number = (value, digits = 3) => (value === null || value === undefined ? "–" : Number(value).toFixed(digits));
const share = (value) => (value === null || value === undefined ? "–" : `${Math.round(100 * value)}%`);
// 99.97% and .03% are not written as 100.0% and 0.0%.
const percent = (value) => {
  const gap = Math.min(value, 1 - value), digits = gap > 0 && gap < 0.0005 ? -Math.floor(Math.log10(100 * gap)) : 1;
  return `${(100 * value).toFixed(digits)}%`;
};
const shown = (value, inPercent) => (inPercent && value !== null && value !== undefined ? percent(value) : number(value));
const ends = (interval, inPercent) => (interval ? `${shown(interval[0], inPercent)} to ${shown(interval[1], inPercent)}` : "–");
// As the command writes widths: two significant digits, whole points from 10 on.
const points = (width) => `${width < 9.95 ? Number(width.toPrecision(2)) : Math.round(width)} points`;
const level = (confidence) => `${Number((100 * confidence).toPrecision(4))}%`;
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
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
  if (made) parts.push(make("p", { className: "figure" }, `${capital(made.quantity)} `, make("strong", {}, shown(made.estimate, made.share)),
    ` (${level(made.confidence_level)} interval ${ends(made.confidence_interval, made.share)} if labelling stops now)`));
  if (found.anytime_interval) parts.push(make("p", {}, `Valid at any time: ${ends(found.anytime_interval, made?.share)}`));
  const agreed = found.agreement;
  if (agreed) {
    parts.push(make("p", {}, `Agreement: Krippendorff's α ${number(agreed.alpha, 2)}`));
    parts.push(...table(`Pairs of annotators${only ? "" : `, ${found.outcome}`}`, agreed.pairs, {
      Pair: (row) => `${row.first}, ${row.second}`, Shared: (row) => row.shared, Agreeing: (row) => share(row.agreeing),
      "Cohen's κ": (row) => number(row.kappa, 2) }));
  }
  return make("section", {}, ...parts);
}

// An element of SVG, and a picture 640 wide.
const SVG = "http://www.w3.org/2000/svg";
function mark(tag, fields, text = "") {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(fields)) node.setAttribute(name, value);
  node.textContent = text;
  return node;
}

function picture(label, height, ...marks) {
  const whole = mark("svg", { class: "picture", viewBox: `0 0 640 ${height}`, role: "img", "aria-label": label });
  whole.append(...marks);
  return whole;
}

// The interval by the number of labels: a band so far, dashed lines as expected.
function course(found) {
  const rows = (found.course?.so_far ?? []).filter((row) => row.confidence_interval && !row.confidence_interval.includes(null));
  if (rows.length < 2) return [];
  const made = found.estimate, value = made.estimate;
  const later = found.course.expected.filter((row) => row.labels >= rows.at(-1).labels)
    .map((row) => ({ labels: row.labels, ends: [value - row.half_width, value + row.half_width] }));
  const all = [...rows.flatMap((row) => row.confidence_interval), ...later.flatMap((row) => row.ends)];
  const [low, high] = made.bounds ? [Math.max(made.bounds[0], Math.min(...all)), Math.min(made.bounds[1], Math.max(...all))] : [Math.min(...all), Math.max(...all)];
  const most = Math.max(rows.at(-1).labels, ...later.map((row) => row.labels));
  const x = (labels) => 70 + 550 * labels / most, y = (at) => 200 - 180 * (Math.min(Math.max(at, low), high) - low) / (high - low || 1);
  const points = (list) => list.map(([at, to]) => `${x(at).toFixed(1)},${y(to).toFixed(1)}`).join(" ");
  const ticks = [low, (low + high) / 2, high].map((at) => mark("text", { x: 62, y: y(at) + 4, "text-anchor": "end" }, shown(at, made.share)));
  const counts = [rows[0].labels, rows.at(-1).labels, most].filter((at, place, list) => !place || x(at) - x(list[place - 1]) > 40)
    .map((at) => mark("text", { x: x(at), y: 220, "text-anchor": "middle" }, String(at)));
  const band = [...rows.map((row) => [row.labels, row.confidence_interval[1]]), ...rows.map((row) => [row.labels, row.confidence_interval[0]]).reverse()];
  const label = `Interval by number of labels: ${ends(rows[0].confidence_interval, made.share)} with ${rows[0].labels}, ${ends(rows.at(-1).confidence_interval, made.share)} with ${rows.at(-1).labels}.`;
  const dashed = [0, 1].map((end) => mark("polyline", { class: "expected", points: points(later.map((row) => [row.labels, row.ends[end]])) }));
  return [make("h2", {}, "Interval by number of labels"), picture(label, 240, mark("polygon", { class: "band", points: points(band) }), ...(later.length > 1 ? dashed : []),
    mark("polyline", { class: "line", points: points(rows.map((row) => [row.labels, row.estimate])) }),
    mark("path", { class: "axis", d: "M70 20V200H620" }), ...ticks, ...counts, mark("text", { x: 345, y: 238, "text-anchor": "middle" }, "labels; dashed: expected with more labels"))];
}

// Bars of the answers of each annotator, skipped items in grey.
function progress(people) {
  const most = Math.max(1, ...people.map((row) => row.submitted + row.skipped));
  const bars = people.flatMap((row, place) => {
    const top = 28 * place, done = 420 * row.submitted / most;
    return [mark("text", { x: 130, y: top + 18, "text-anchor": "end" }, row.annotator.slice(0, 18)),
      mark("rect", { class: "done", x: 140, y: top + 5, width: done, height: 18 }),
      mark("rect", { class: "skipped", x: 140 + done, y: top + 5, width: 420 * row.skipped / most, height: 18 }),
      mark("text", { x: 146 + 420 * (row.submitted + row.skipped) / most, y: top + 18 }, `${row.submitted}${row.skipped ? ` + ${row.skipped} skipped` : ""}`)];
  });
  const label = people.map((row) => `${row.annotator} ${row.submitted}`).join(", ");
  return people.length ? [make("h2", {}, "Answers by annotator"), picture(`Answers by annotator: ${label}.`, 28 * people.length + 6, ...bars)] : [];
}

function render(found) {
  const answers = found.rounds.reduce((sum, row) => sum + row.answers, 0), wanted = found.rounds.reduce((sum, row) => sum + row.wanted, 0);
  const { stop, disagreements: apart, nonresponse } = found;
  const { seconds_per_item: each, seconds_left: left } = found.time;
  const pace = each === null ? "" : `; ${duration(each)} per item${left ? `, about ${duration(left)} left` : ""}`;
  const lines = [make("h1", { dir: "auto" }, found.question),
    make("p", {}, `${answers} of ${wanted} answers${pace}`), make("progress", { max: Math.max(1, wanted), value: answers, ariaLabel: "Answers given" })];
  const inPercent = found.questions[0]?.estimate?.share, width = (half) => (inPercent ? points(200 * half) : number(2 * half));
  if (stop.half_width) lines.push(make("p", {}, stop.enough ? "The interval is as narrow as requested: labelling can stop."
    : `Target: an interval ${width(stop.half_width)} wide${stop.half_width_now ? `; now ${width(stop.half_width_now)}` : ""}${stop.more_labels ? `, about ${stop.more_labels} more labelled items` : ""}.`));
  lines.push(...found.notes.map((note) => make("p", { className: "warning", dir: "auto" }, note)));
  root.replaceChildren(...lines,
    ...found.questions.map((one) => outcome(one, stop, found.questions.length === 1)),
    ...(found.estimate ? [make("p", {}, make("a", { href: "report", target: "_blank", rel: "noopener" }, "Open the report"))] : []),
    ...course(found), ...progress(found.annotators),
    ...table("Annotators", found.annotators, { Name: (row) => row.annotator + (row.set_aside ? " (set aside)" : ""),
      Submitted: (row) => row.submitted, Skipped: (row) => row.skipped,
      "Seconds per item": (row) => number(row.seconds_per_item, 1), Last: (row) => time(row.last) }),
    make("p", {}, `Disagreements: ${apart.open} open, ${apart.decided} decided${apart.shared ? `; ${share(apart.share)} of ${apart.shared} items that several people answered` : ""}.`),
    ...table("Nonresponse by stratum", nonresponse.strata, { Stratum: (row) => row.stratum, Items: (row) => row.items,
      Labelled: (row) => row.labelled, "Only skipped": (row) => row.skipped, Open: (row) => row.open }),
    ...table("Flagged", found.flags, { Item: (row) => row.item, By: (row) => row.annotator, Note: (row) => row.note }),
    ...table("Notes", found.notes_of_annotators, { Item: (row) => row.item, By: (row) => row.annotator, Note: (row) => row.note }),
    make("p", { className: "fresh" }, `As of ${new Date().toLocaleTimeString()}; this page is read-only.`));
  document.title = `${answers} of ${wanted} – ${found.question}`;
}

let last = "";
async function look() {
  try {
    const answer = await fetch("api/status", { cache: "no-store", credentials: "omit" });
    const text = await answer.text();
    if (!answer.ok) throw new Error(JSON.parse(text).error?.message ?? `The server returned status ${answer.status}.`);
    root.querySelector(".banner")?.remove();
    if (text !== last) { last = text; render(JSON.parse(text)); }
  } catch (error) {
    const message = error instanceof TypeError ? "The server does not respond. This page retries automatically." : error.message;
    root.querySelector(".banner")?.remove();
    root.prepend(make("p", { className: "banner", role: "alert" }, message));
  }
  setTimeout(look, EVERY);
}
look();
