// One item at a time, by keyboard or by hand. The same script serves the server's page, the page in one file
// and the notebook; each gives a `transport` with state, item, trail, disagreements and act.
//
// Whatever comes as HTML has passed the sanitiser in Python; everything else is put in as text.

import { KEYS, SKELETON, duration, kept, make, request, stopwatch } from "./parts.js";

export function annotate(root, transport, { keys, tools = [] }) {
  root.innerHTML = SKELETON;
  const $ = (path) => root.querySelector(path);
  const watch = stopwatch();
  let state = null, live = null, shown = null;
  let trail = [], place = -1, deciding = null, decided = null, busy = false, again = null;

  const button = (label, key, act, name) => {
    const node = make("button", { type: "button", className: name ?? "" }, label);
    if (key) node.append(" ", make("kbd", {}, key));
    node.addEventListener("click", act);
    return node;
  };
  const say = (text) => { $(".said").textContent = text; };
  const draft = () => `stratal-note:${state.study}:${state.annotator}:${shown.id}`;

  function trouble(text, retry) {
    again = retry;
    const box = $(".banner");
    box.replaceChildren(make("p", {}, text), ...(retry ? [button("Try again", "Enter", retry)] : []));
    box.hidden = false;
  }
  function calm() { again = null; $(".banner").hidden = true; $(".banner").replaceChildren(); }

  // Runs one thing at a time; what fails is shown, and can be tried again as it was.
  async function run(what) {
    if (busy) return undefined;
    busy = true; root.setAttribute("aria-busy", "true");
    try {
      const got = await what();
      calm();
      return got;
    } catch (error) {
      const retry = ["refused", "missing", "input"].includes(error.kind) ? null : () => follow(what);
      trouble(error.message, retry);
      return undefined;
    } finally { busy = false; root.removeAttribute("aria-busy"); }
  }
  let follow = (what) => run(what);

  const act = (body, then) => {
    const whole = { ...body, request: request() };
    return run(async () => { then(await transport.act(whole)); });
  };

  function show(item, answers = null) {
    shown = item;
    root.classList.toggle("deciding", deciding !== null);
    $(".answer").hidden = item === null;
    const box = $(".item");
    box.replaceChildren(...(item === null ? rest() : content(item, answers)));
    for (const node of $(".choices").querySelectorAll("input")) node.checked = false;
    $(".free input").value = "";
    $(".note textarea").value = "";
    if (item !== null) prefill(item);
    $(".flag").setAttribute("aria-pressed", String(Boolean(item?.flagged)));
    $(".forward").disabled = place < 0 || deciding !== null;
    for (const name of [".back", ".skip", ".flag"]) $(name).disabled = deciding !== null;
    count();
    watch.start();
    if (root.dataset.home !== "notebook") scrollTo({ top: 0 });
    if (root.contains(document.activeElement)) box.focus({ preventScroll: true });
  }

  function prefill(item) {
    const said = item.answer;
    const same = [...$(".choices").querySelectorAll("input")].find((node) => node.value === said?.value);
    if (same) same.checked = true;
    else if (said?.value && state.question.free) $(".free input").value = said.value;
    $(".note textarea").value = kept.get(draft()) ?? said?.note ?? "";
  }

  function content(item, answers) {
    const block = (field, level) => {
      const body = make("div", { className: "body" });
      body.innerHTML = field.html;
      const part = make("div", { className: field.long ? "field long" : "field" },
        make(level, { className: "name", dir: "auto" }, field.name), body);
      if (field.long) {
        const more = button("Show all", ".", () => {
          const open = part.classList.toggle("open");
          more.setAttribute("aria-expanded", String(open));
          more.firstChild.textContent = open ? "Fold" : "Show all";
        }, "more");
        more.setAttribute("aria-expanded", "false");
        part.append(more);
      }
      return part;
    };
    const only = item.fields.length === 1 && item.sides.length === 0;
    const parts = item.fields.map((field) => block(field, "h2"));
    if (only) parts[0].classList.add("only");
    if (item.sides.length) parts.push(make("div", { className: "sides" }, ...item.sides.map((side) => block(side, "h2"))));
    if (answers) parts.push(make("div", { className: "answers" }, make("h2", {}, "What was said"),
      make("ul", {}, ...answers.map((said) => make("li", { dir: "auto" },
        make("strong", {}, label(said.value)), said.note ? ` – ${said.note}` : "")))));
    const said = item.answer;
    if (said && deciding === null) parts.unshift(make("p", { className: "before" },
      said.status === "skipped" ? "You skipped this item." : `You answered: ${label(said.value)}.`));
    return parts;
  }

  const label = (value) => state.question.choices.find((choice) => choice.value === value)?.label ?? value;

  function rest() {
    const { progress } = state, parts = [];
    if (progress.enough) parts.push(make("p", {}, "The result is as precise as was asked for. Labelling may stop."));
    else if (progress.open > 0 && progress.done < progress.total) parts.push(
      make("p", {}, "Nothing is free for you right now: the remaining items are with others, or you skipped them."),
      button("Look again", "Enter", open));
    else parts.push(make("p", {}, "All done. Thank you."));
    return [make("div", { className: "rest" }, ...parts)];
  }

  function count() {
    const p = state.progress, mine = p.submitted + p.skipped;
    $(".count").textContent = `${p.done} / ${p.total} · ${mine} by you` + (p.skipped ? `, ${p.skipped} skipped` : "");
    $("progress").max = Math.max(1, p.total);
    $("progress").value = p.done;
    $(".time").textContent = p.seconds_left && p.done < p.total ? `about ${duration(p.seconds_left)} left` : "";
    const judge = $(".judge");
    judge.hidden = !(state.adjudicator && (p.disagreements > 0 || deciding !== null));
    judge.textContent = deciding !== null ? "Back to labelling" : `Disagreements (${p.disagreements})`;
    if (p.message) trouble(p.message, null);
  }

  function take(got) {
    state.progress = got.progress;
    live = got.item;
  }

  function ask() {
    const { question } = state;
    $(".question").textContent = question.text;
    document.title = root.dataset.home === "notebook" ? document.title : `Labelling – ${state.annotator}`;
    const options = question.choices.map((choice) => {
      const input = make("input", { type: "radio", name: `choice-${state.study}`, value: choice.value });
      const text = make("label", { className: "choice" }, input, make("span", { dir: "auto" }, choice.label));
      if (choice.key) text.append(make("kbd", {}, choice.key.toUpperCase()));
      return text;
    });
    $(".choices").append(...options);
    $(".choices").hidden = options.length === 0;
    $(".free").hidden = !question.free;
    const rubric = make("div", { className: "body" });
    rubric.innerHTML = question.rubric;
    const quiet = make("input", { type: "checkbox", checked: kept.get("stratal-keys") !== "off" });
    quiet.addEventListener("change", () => kept.set("stratal-keys", quiet.checked ? "" : "off"));
    $(".help").append(
      ...(question.rubric ? [make("h2", {}, `How to judge (version ${question.rubric_version})`), rubric] : []),
      make("h2", {}, "Keys"),
      make("dl", {}, ...KEYS.flatMap(([key, what]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)])),
      make("label", {}, quiet, " Single keys work as shown"),
      button("Close", "Esc", () => $(".help").close()));
  }

  function chosen() {
    const typed = $(".free input").value.trim();
    return (state.question.free && typed) || $(".choices input:checked")?.value || null;
  }

  const note = () => $(".note textarea").value;
  const seconds = () => (shown?.answer ? {} : { seconds: Math.round(watch.seconds() * 10) / 10 });

  function submit() {
    if (again) return again();
    if (shown === null) return open();
    const value = chosen();
    if (value === null) { say("Choose an answer first."); return undefined; }
    if (deciding !== null) return decide(value);
    return act({ action: "submit", item: shown.id, value, note: note(), ...seconds() }, advance("Saved."));
  }

  function skip() {
    if (shown === null || deciding !== null) return undefined;
    return act({ action: "skip", item: shown.id, note: note(), ...seconds() }, advance("Skipped."));
  }

  const advance = (text) => (got) => {
    kept.set(draft(), "");
    take(got);
    if (place > 0) { place -= 1; moveTo(trail[place].item); }
    else { place = -1; trail = []; show(live); }
    say(text);
  };

  function undo() {
    if (deciding !== null) return takeBack();
    return act({ action: "undo" }, (got) => {
      take(got); place = -1; trail = []; show(live); say("Taken back.");
    });
  }

  function flag() {
    if (shown === null || deciding !== null) return undefined;
    const on = !shown.flagged;
    return act({ action: on ? "flag" : "unflag", item: shown.id }, (got) => {
      state.progress = got.progress;
      shown.flagged = on;
      if (live !== null && live.id === shown.id) live.flagged = on;
      $(".flag").setAttribute("aria-pressed", String(on));
      say(on ? "Flagged." : "No longer flagged.");
    });
  }

  // A note on an item that is left without an answer is saved by itself.
  async function keepNote() {
    const text = note();
    if (shown === null || deciding !== null || !kept.get(draft()) || text === (shown.answer?.note ?? "")) return true;
    const item = shown;
    if (item.answer?.status === "submitted") {
      const value = item.answer.value;
      return run(async () => {
        await transport.act({ action: "submit", item: item.id, value, note: text, request: request() });
        kept.set(draft(), "");
        return true;
      });
    }
    return run(async () => {
      await transport.act({ action: "note", item: item.id, note: text, request: request() });
      return true;
    });
  }

  const moveTo = (id) => run(async () => show((await transport.item(id)).item));

  async function move(step) {
    if (deciding !== null || busy || !(await keepNote())) return;
    if (step < 0) {
      if (place < 0 && step > 0) return;
      if (place + 1 >= trail.length) {
        const last = trail.at(-1)?.seq;
        const more = await run(() => transport.trail(last));
        if (more === undefined) return;
        trail = [...trail, ...more.answers];
      }
      if (place + 1 >= trail.length) { say("There is nothing earlier."); return; }
      place += 1;
      await moveTo(trail[place].item);
    } else if (place > 0) {
      place -= 1;
      await moveTo(trail[place].item);
    } else if (place === 0) {
      place = -1; trail = [];
      await open();
    }
  }

  async function judge() {
    if (deciding !== null) { deciding = null; await open(); return; }
    if (!(await keepNote())) return;
    await run(async () => {
      deciding = (await transport.disagreements()).disagreements;
      place = -1; trail = [];
      showDecision();
    });
  }

  function showDecision() {
    const first = deciding[0] ?? null;
    if (first === null) { deciding = null; show(live); say("No disagreement is left."); return; }
    show(first, first.answers);
  }

  function decide(value) {
    const { id } = shown;
    return act({ action: "adjudicate", item: id, value, note: note() }, (got) => {
      kept.set(draft(), "");
      take(got); decided = id;
      deciding = deciding.filter((entry) => entry.id !== id);
      if (deciding.length || got.progress.disagreements === 0) showDecision();
      else { deciding = null; setTimeout(judge); }
      say("Decided.");
    });
  }

  function takeBack() {
    if (decided === null) { say("There is no decision to take back."); return undefined; }
    return act({ action: "adjudicate", item: decided, value: null }, (got) => {
      take(got); decided = null; deciding = null; setTimeout(judge); say("The decision is taken back.");
    });
  }

  const open = () => run(async () => { take(await transport.state()); show(live); });

  function unfold() { for (const node of root.querySelectorAll(".more")) node.click(); }
  function help() { $(".help").showModal(); $(".help").focus(); $(".help").scrollTop = 0; }

  function step(by) {
    const all = [...$(".choices").querySelectorAll("input")];
    if (!all.length) return;
    const now = all.findIndex((node) => node.checked);
    const next = all[now < 0 ? (by > 0 ? 0 : all.length - 1) : (now + by + all.length) % all.length];
    next.checked = true; next.focus();
  }

  function choose(key) {
    const place = state.question.choices.findIndex((choice) => choice.key && choice.key === key);
    if (place < 0 || shown === null) return false;
    const node = $(".choices").querySelectorAll("input")[place];
    node.checked = true; node.focus({ preventScroll: true });
    $(".free input").value = "";
    return true;
  }

  const COMMANDS = {
    enter: submit, s: skip, backspace: skip, u: undo, f: flag, n: () => $(".note textarea").focus(),
    "/": () => { if (state.question.free) $(".free input").focus(); }, arrowleft: () => move(-1),
    arrowright: () => move(1), arrowup: () => step(-1), arrowdown: () => step(1), ".": unfold, "?": help,
    escape: () => { if (deciding !== null) judge(); },
  };

  function pressed(event) {
    if (state === null || event.isComposing || $(".help").open) return;
    const key = event.key.toLowerCase(), at = event.target;
    const typing = at.matches?.("textarea, input[type=text]");
    if (typing) {
      if (key === "escape") { at.blur(); $(".item").focus({ preventScroll: true }); event.preventDefault(); }
      else if (key === "enter" && (event.ctrlKey || event.metaKey || at.matches("input"))) {
        event.preventDefault(); submit();
      }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ((key === "enter" || key === " ") && at.matches?.("button, a, summary, audio")) return;
    if (at.matches?.("audio") && key.startsWith("arrow")) return;
    const single = event.key.length === 1 || key === "backspace";
    if (single && kept.get("stratal-keys") === "off") return;
    if (event.repeat && !key.startsWith("arrow")) { event.preventDefault(); return; }
    const done = choose(key) || COMMANDS[key];
    if (!done) return;
    event.preventDefault();
    if (typeof done === "function") done();
  }

  $(".buttons").append(
    make("button", { type: "submit", className: "submit" }, "Submit ", make("kbd", {}, "Enter")),
    button("Skip", "S", skip, "skip"), button("Undo", "U", undo, "undo"), button("Flag", "F", flag, "flag"),
    button("Earlier", "←", () => move(-1), "back"), button("Later", "→", () => move(1), "forward"));
  $(".tools").append(button("", "", judge, "judge"), button("Help", "?", help), ...tools);
  $(".answer").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  $(".note textarea").addEventListener("input", () => kept.set(draft(), note()));
  $(".judge").hidden = true;
  keys.addEventListener("keydown", pressed);

  const start = () => run(async () => {
    const got = await transport.state();
    state ??= got;
    take(got); ask(); show(live);
    follow = (what) => run(what);
    $(".item").focus({ preventScroll: true });
  });
  start();
  return { say, close: () => keys.removeEventListener("keydown", pressed) };
}
