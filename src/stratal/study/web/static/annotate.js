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
  let failed = null, queued = false;

  const button = (label, key, act, name) => {
    const node = make("button", { type: "button", className: name ?? "" }, label);
    if (key) node.append(" ", make("kbd", {}, key));
    node.addEventListener("click", act);
    return node;
  };
  const say = (text) => { $(".said").textContent = text; };

  // What is entered and not saved yet is kept by the browser, for each item, and apart for decisions.
  const own = (name) => `stratal-${name}:${state.study}:${state.annotator}`;
  const draft = (id = shown.id) => `${own(deciding === null ? "draft" : "decision")}:${id}`;
  const entered = () => JSON.stringify([chosen(), note()]);
  function keepDraft() {
    if (shown !== null) kept.set(draft(), chosen() === null && note() === "" ? "" : entered());
  }
  const forget = (name, value) => { if (kept.get(name) === value) kept.set(name, ""); };

  function trouble(text, retry) {
    again = retry && { retry, value: chosen() };
    say("");
    const box = $(".banner");
    box.replaceChildren(make("p", {}, text), ...(retry ? [button("Try again", "Enter", submit)] : []));
    box.hidden = false;
  }
  function calm() { again = null; $(".banner").hidden = true; $(".banner").replaceChildren(); }

  const final = (error) => ["refused", "missing", "input"].includes(error.kind);

  // Runs one thing at a time; what fails is shown, and can be tried again.
  async function run(what, retry = () => run(what)) {
    if (busy) return undefined;
    busy = true; root.setAttribute("aria-busy", "true");
    say("");
    try {
      const got = await what();
      calm();
      return got;
    } catch (error) {
      trouble(error.message, final(error) ? null : retry);
      return undefined;
    } finally { busy = false; root.removeAttribute("aria-busy"); }
  }

  // The same act, tried again, keeps its request, so that it is saved once. An edited one is another act: if the
  // first had arrived after all, it is changed. `retry` builds the act anew from what is entered then.
  async function act({ seconds: taken, ...body }, then, retry) {
    if (busy) { queued = "value" in body; return undefined; }
    const key = JSON.stringify(body), form = entered(), answers = "value" in body || body.action === "skip";
    const { id } = shown ?? {}, name = id && draft();
    const whole = failed?.key === key ? failed.whole : { ...body, seconds: taken, request: request() };
    failed = { key, whole };
    queued = false;
    if (answers && deciding === null) kept.set(own("unsaved"), id);
    const got = await run(async () => {
      try {
        return await transport.act(whole);
      } catch (error) {
        if (final(error)) failed = null;
        throw error;
      }
    }, retry);
    if (got === undefined) return undefined;
    failed = null;
    if (answers) {
      forget(own("unsaved"), id);
      if (entered() !== form) return editedMeanwhile(body, got);
      if (!("value" in body) || body.value === chosen()) forget(name, form);
    }
    await then(got);
    return true;
  }

  // While the answer was on its way, another was entered: that one is shown still, and not saved yet.
  function editedMeanwhile(body, got) {
    take(got);
    count();
    const status = body.action === "skip" ? "skipped" : "submitted";
    if (deciding === null) shown = { ...shown, answer: { status, value: body.value ?? null, note: body.note } };
    keepDraft();
    kept.set(own("unsaved"), shown.id);
    if (queued) return send();
    say("Saved as it was sent. What you changed since is not saved yet: press Enter.");
    return true;
  }

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
    const [value, text] = left(item) ?? [item.answer?.value ?? null, item.answer?.note ?? ""];
    const same = [...$(".choices").querySelectorAll("input")].find((node) => node.value === value);
    if (same) same.checked = true;
    else if (value && state.question.free) $(".free input").value = value;
    $(".note textarea").value = text;
  }

  // The answer and the note of an item that were entered and not saved, null where there are none.
  function left(item) {
    const text = kept.get(draft(item.id));
    if (!text || text === JSON.stringify([item.answer?.value ?? null, item.answer?.note ?? ""])) return null;
    try { return JSON.parse(text); } catch { return null; }
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
    if (state === null) return null;
    const typed = $(".free input").value.trim();
    return (state.question.free && typed) || $(".choices input:checked")?.value || null;
  }

  const note = () => $(".note textarea").value;
  const seconds = () => (shown?.answer ? undefined : Math.round(watch.seconds() * 10) / 10);

  // Tries again what failed, unless another answer was chosen since: then that is what Enter means.
  function submit() {
    if (again && chosen() === again.value) return again.retry();
    return send();
  }

  function send() {
    if (shown === null) return open();
    const value = chosen();
    if (value === null) { say("Choose an answer first."); return undefined; }
    if (deciding !== null) return decide(value);
    const body = { action: "submit", item: shown.id, value, note: note(), seconds: seconds() };
    return act(body, advance("Saved."), send);
  }

  function skip() {
    if (shown === null || deciding !== null) return undefined;
    return act({ action: "skip", item: shown.id, note: note(), seconds: seconds() }, advance("Skipped."), skip);
  }

  const advance = (text) => async (got) => {
    take(got);
    if (place > 0) { place -= 1; count(); await moveTo(trail[place].item); }
    else { place = -1; trail = []; show(live); }
    say(text);
  };

  function undo() {
    if (deciding !== null) return takeBack();
    return act({ action: "undo" }, (got) => {
      take(got); place = -1; trail = []; show(live); say("Taken back.");
    }, undo);
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
    }, flag);
  }

  // A note on an item that is left without an answer is saved by itself.
  async function keepNote() {
    if (shown === null || deciding !== null) return true;
    const text = note(), { id, answer } = shown;
    if (!kept.get(draft()) || text === (answer?.note ?? "")) return true;
    const body = answer?.status === "submitted"
      ? { action: "submit", item: id, value: answer.value, note: text } : { action: "note", item: id, note: text };
    return act(body, () => {}, keepNote);
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
      take(got); decided = id;
      deciding = deciding.filter((entry) => entry.id !== id);
      if (deciding.length || got.progress.disagreements === 0) showDecision();
      else { deciding = null; setTimeout(judge); }
      say("Decided.");
    }, send);
  }

  function takeBack() {
    if (decided === null) { say("There is no decision to take back."); return undefined; }
    return act({ action: "adjudicate", item: decided, value: null }, (got) => {
      take(got); decided = null; deciding = null; setTimeout(judge); say("The decision is taken back.");
    }, takeBack);
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
    keepDraft();
  }

  function choose(key) {
    const place = state.question.choices.findIndex((choice) => choice.key && choice.key === key);
    if (place < 0 || shown === null) return false;
    const node = $(".choices").querySelectorAll("input")[place];
    node.checked = true; node.focus({ preventScroll: true });
    $(".free input").value = "";
    keepDraft();
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
  $(".answer").addEventListener("input", keepDraft);
  $(".judge").hidden = true;
  keys.addEventListener("keydown", pressed);

  // Shows what was entered before the page was closed and never saved; else the item to label now.
  async function resume() {
    const id = kept.get(own("unsaved"));
    let item = id && id === live?.id ? live : null;
    if (id && item === null) {
      try {
        item = (await transport.item(id)).item;
      } catch (error) {
        if (!final(error)) throw error;
      }
    }
    if (item !== null && left(item)) { show(item); say("What you entered here was not saved yet."); return; }
    kept.set(own("unsaved"), "");
    show(live);
  }

  const start = () => run(async () => {
    const got = await transport.state();
    state ??= got;
    take(got);
    if (!$(".question").textContent) ask();
    await resume();
    $(".item").focus({ preventScroll: true });
  });
  start();
  return { say, close: () => keys.removeEventListener("keydown", pressed) };
}
