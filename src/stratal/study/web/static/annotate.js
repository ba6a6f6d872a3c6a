// One item at a time, by keyboard or by hand. The same script serves the server's page, the page in one file
// and the notebook; each gives a `transport` with state, item, trail, disagreements and act. That of the page in
// one file has `items` instead: all there are, and what is done stays in its `box`.
//
// Whatever comes as HTML has passed the sanitiser in Python; everything else is put in as text.

import { KEEPS, KEYS, SKELETON, duration, final, kept, make, outbox, request, stopwatch } from "./parts.js";

const PAUSES = [500, 1000, 2000, 4000, 8000]; // before what waits is sent again; the last one from then on
const MANY = 11; // points of a scale, from which it is a number to type

export function annotate(root, transport, { keys, tools = [] }) {
  root.innerHTML = SKELETON;
  const $ = (path) => root.querySelector(path);
  const watch = stopwatch();
  let state = null, box = null, live = null, shown = null;
  let trail = [], place = -1, deciding = null, decided = null, busy = false;
  let away = null, failures = 0, timer = null, sending = false, active = 0;
  const seen = new Map(); // items shown on this page, with what was said of them here

  const button = (label, key, act, name) => {
    const node = make("button", { type: "button", className: name ?? "" }, label);
    if (key) node.append(" ", make("kbd", {}, key));
    node.addEventListener("click", act);
    return node;
  };
  const say = (text) => { $(".said").textContent = text; };
  const own = (name) => `stratal-${name}:${state.study}:${state.annotator}`;

  function trouble(text) {
    if (text) say("");
    $(".banner").textContent = text ?? "";
    $(".banner").hidden = !text;
  }

  // Runs one thing at a time; nothing can be entered meanwhile, and a failure is shown.
  async function run(what) {
    if (busy) return undefined;
    busy = true; root.setAttribute("aria-busy", "true");
    const slow = setTimeout(() => say("Working …"), 300);
    if ($(".bar").contains(document.activeElement)) $(".item").focus({ preventScroll: true });
    $(".bar").inert = true;
    try {
      const got = await what();
      if (!away) trouble(null);
      return got;
    } catch (error) {
      trouble(error.message);
      return undefined;
    } finally {
      clearTimeout(slow);
      if ($(".said").textContent === "Working …") say("");
      busy = false; root.removeAttribute("aria-busy"); $(".bar").inert = false;
    }
  }

  // What is entered and not saved yet is kept by the browser, for each item, and apart for decisions.
  const draft = (id = shown.id) => `${own(deciding === null ? "draft" : "decision")}:${id}`;
  const entered = () => JSON.stringify([values(), note()]);
  const before = (item) => JSON.stringify([item.answer?.value ?? {}, item.answer?.note ?? ""]);
  function keepDraft() { if (shown) kept.set(draft(), entered() === before(shown) ? "" : entered()); }

  // Saves an act: it is in the browser's storage before it is sent, and leaves it once the server has it. While the
  // server is away it stays there and the next item is shown, as long as there are items that were given ahead.
  async function act(body, then) {
    if (busy) return undefined;
    const name = shown && draft(), said = entered(), entry = box.add({ ...body, request: request(), ...(transport.items && { at: new Date().toISOString() }) });
    const got = await run(async () => {
      if (transport.items && KEEPS && !box.lasting()) {
        box.remove(entry);
        throw new Error("This browser could not save your answer: its storage is full. Download your labels now.");
      }
      if (transport.items) return local();
      if (box.all()[0].body.request !== entry.body.request) { send(); return local(); }
      try {
        return await sent(entry);
      } catch (error) {
        if (final(error)) { box.remove(entry); throw error; }
        leave(error);
        return local();
      }
    });
    count();
    if (got === undefined) return undefined;
    if (name && kept.get(name) === said) kept.set(name, "");
    remember(body);
    await then(got);
    return true;
  }

  function remember({ action, item, value, note: text }) {
    if (!seen.has(item)) return;
    const status = action === "skip" ? "skipped" : "submitted";
    if (action === "flag" || action === "unflag") seen.set(item, { ...seen.get(item), flagged: action === "flag" });
    else if (isAnswer(action)) seen.set(item, { ...seen.get(item), answer: { status, value: value ?? null, note: text ?? "" } });
  }

  const isAnswer = (action) => action === "submit" || action === "skip";

  async function sent(entry) {
    box.try(entry);
    const got = await transport.act(entry.body);
    box.remove(entry);
    return got;
  }

  // What is next by what this page knows, without the server; `said`: the answers that wait, in their order.
  function local() {
    const known = transport.items ?? [live, ...state.ahead].filter(Boolean), said = [], undone = [];
    for (const item of known) if (transport.items || !seen.has(item.id)) seen.set(item.id, item);
    for (const { body } of box.all()) {
      if (body.action === "undo") undone.unshift(said.pop()?.item);
      else if (isAnswer(body.action)) said.push(body);
      else remember(body);
    }
    said.forEach(remember);
    const waits = new Set(said.map((body) => body.item)), ids = new Set([...undone, ...known.map((item) => item.id)]);
    const next = [...ids].filter((id) => seen.has(id) && !waits.has(id)).map((id) => seen.get(id));
    return { item: next[0] ?? null, ahead: next.slice(1), said, progress: transport.progress?.(said) ?? state.progress };
  }

  function leave(error) {
    away = error.message;
    trouble(`${away} Your answers are saved in this browser and will be sent automatically.`);
    clearTimeout(timer);
    timer = setTimeout(send, PAUSES[Math.min(failures, PAUSES.length - 1)]);
    failures += 1;
  }

  // Sends what waits, in its order, until nothing does or the server is away again.
  async function send() {
    if (sending || box === null) return;
    sending = true;
    let got = null, refused = null;
    try {
      for (let entry = box.all()[0]; entry; entry = box.all()[0]) {
        try {
          got = await sent(entry);
        } catch (error) {
          if (!final(error)) { leave(error); return; }
          box.remove(entry); // what was refused is a draft again, and is told
          refused = error.message;
          if ("value" in entry.body) kept.set(`${own("draft")}:${entry.body.item}`, JSON.stringify([entry.body.value ?? {}, entry.body.note ?? ""]));
        }
      }
      if (got === null) got = await transport.state();
    } catch (error) {
      leave(error);
      return;
    } finally { sending = false; count(); }
    const recovered = away !== null;
    away = null; failures = 0;
    trouble(refused);
    take(got);
    if (recovered && !refused) say("The server is available again. All answers are saved.");
    if (shown === null && deciding === null) await onward();
    count();
  }

  function show(item, answers = null) {
    shown = item; active = 0;
    if (item) seen.set(item.id, item);
    root.classList.toggle("deciding", deciding !== null);
    $(".questions").classList.toggle("off", item === null);
    $(".item").replaceChildren(...(item === null ? rest() : content(item, answers)));
    $(".middle").scrollTop = 0;
    const [given, text] = (item && left(item)) ?? [item?.answer?.value ?? {}, item?.answer?.note ?? ""];
    fill(given);
    $(".note textarea").value = text;
    $(".note").hidden = !text;
    tallies(answers);
    $(".flag").setAttribute("aria-pressed", String(Boolean(item?.flagged)));
    $(".forward").disabled = place < 0 || deciding !== null;
    $(".back").disabled = deciding !== null;
    $(".flag").disabled = deciding !== null || item === null;
    for (const name of [".skip", ".writes"]) $(name).disabled = item === null;
    conditions();
    fold();
    count();
    watch.start();
    if (root.contains(document.activeElement)) $(".item").focus({ preventScroll: true });
  }

  // The answer and the note of an item that were entered and not saved, null where there are none.
  function left(item) {
    const text = kept.get(draft(item.id));
    try { return text && text !== before(item) ? JSON.parse(text) : null; } catch { return null; }
  }

  function fill(given) {
    for (const [k, question] of state.form.questions.entries()) {
      const said = [given?.[question.name] ?? []].flat();
      for (const node of fields(k)) {
        if (node.type === "text") node.value = typed(k, said).join("");
        else node.checked = said.includes(node.value);
      }
    }
  }

  // Of answers to a question those that are none of the choices that are shown.
  const typed = (k, said) => said.filter((one) => !fields(k).some((node) => node.type !== "text" && node.value === one));

  function content(item, answers) {
    const { form } = state;
    const block = (field, side) => {
      const body = make("div", { className: "body" });
      body.innerHTML = field.html;
      const part = make("div", { className: "field" }, make("h2", { className: "name", dir: "auto" }, field.name), body);
      part.dataset.name = field.name;
      if (side) part.append(button(`${side} is better`, "", () => choose(form.questions.findIndex((question) => question.kind === "pair"), side), "better"));
      return part;
    };
    const parts = item.fields.map((field) => block(field));
    if (parts.length === 1 && item.sides.length === 0) parts[0].classList.add("only");
    root.classList.toggle("wide", item.sides.length > 0);
    if (item.sides.length) parts.push(make("div", { className: "sides" }, ...item.sides.map((side) => block(side, side.name))));
    const notes = (answers ?? []).filter((said) => said.note);
    if (notes.length) parts.push(make("div", { className: "answers" }, make("h2", {}, "Notes"),
      make("ul", {}, ...notes.map((said) => make("li", { dir: "auto" }, said.note)))));
    const said = item.answer;
    if (said && deciding === null) parts.unshift(make("p", { className: "previous" },
      said.status === "skipped" ? "You skipped this item." : `You answered: ${inWords(said.value)}.`));
    return parts;
  }

  const inWords = (value) => Object.values(value ?? {}).map((one) => [one].flat().join(", ") || "none of these").join("; ");

  // How many gave each answer, beside the choice; and the answers in people's own words.
  function tallies(answers) {
    for (const node of root.querySelectorAll(".tally")) node.remove();
    if (!answers) return;
    for (const [k, question] of state.form.questions.entries()) {
      const given = answers.flatMap((said) => [said.value?.[question.name] ?? []].flat());
      for (const node of fields(k)) {
        const mine = node.type === "text" ? typed(k, given) : given.filter((one) => one === node.value);
        const text = node.type === "text" ? mine.join(" / ") : question.kind === "scale" ? `×${mine.length}` : `${mine.length} gave this answer`;
        if (mine.length) node.closest("label").append(make("span", { className: "tally", dir: "auto" }, text));
      }
    }
  }

  // A text is folded where it is longer than the room there is; what was unfolded once stays so for its column.
  function fold() {
    const room = $(".middle").clientHeight || 600;
    for (const part of root.querySelectorAll(".item .field")) {
      const body = part.querySelector(".body"), name = own(`open-${part.dataset.name}`);
      if (body.scrollHeight < room * 0.9 || body.querySelector("img, audio")) continue;
      const more = button("Show all", ".", () => turn(!part.classList.contains("folded"), true), "more");
      const turn = (closed, remember) => {
        part.classList.toggle("folded", closed);
        body.style.maxHeight = closed ? `${Math.max(160, Math.round(room * 0.6))}px` : "";
        more.setAttribute("aria-expanded", String(!closed));
        more.firstChild.textContent = closed ? "Show all" : "Show less";
        if (remember) kept.set(name, closed ? "" : "yes");
      };
      body.after(more);
      turn(kept.get(name) !== "yes", false);
    }
  }

  function rest() {
    const { progress } = state, open_ = progress.done < progress.total;
    let text = "All done. Thank you.";
    if (away) text = "Waiting for the server. Nothing is lost; this page continues automatically.";
    else if (progress.enough) text = "The interval is as narrow as requested: labelling can stop.";
    else if (open_) text = "No item is available for you right now: the remaining items are assigned to others, or you skipped them.";
    const again = open_ && !away && !progress.enough ? [button("Check again", "Enter", open)] : [];
    return [make("div", { className: "rest" }, make("p", {}, text), ...again)];
  }

  let share = null;
  function count() {
    const p = state.progress, waits = box.all().length;
    const mine = p.submitted, all = Math.max(p.share, mine);
    // Items that nobody has are divided among those at work, so that a share grows if others pause.
    if (share !== null && !deciding && Math.abs(all - share) > Math.max(2, 0.05 * share)) {
      say(`Your share is now ${all} items: the open items are divided among the active annotators.`);
    }
    share = all;
    $(".count").title = "Your answers, and your share of the items: open items are divided among the active annotators.";
    $(".count").textContent = deciding ? `Decision ${deciding.at + 1} of ${deciding.total}`
      : `${mine} of your ${all}` + (p.skipped ? `, ${p.skipped} skipped` : "");
    $("progress").max = Math.max(1, deciding ? deciding.total : all);
    $("progress").value = deciding ? deciding.at : mine;
    $(".time").textContent = p.seconds_left && p.done < p.total && !deciding ? `about ${duration(p.seconds_left)} left` : "";
    const judge = $(".judge");
    judge.hidden = !(state.adjudicator && (p.disagreements > 0 || deciding !== null));
    judge.textContent = deciding !== null ? "Back to labelling" : `Decide (${p.disagreements})`;
    $(".waiting").hidden = waits === 0 || Boolean(transport.items);
    $(".waiting").textContent = `${waits} ${waits === 1 ? "answer" : "answers"} waiting${box.lasting() ? "" : "; keep this page open"}`;
    if (p.message) trouble(p.message);
  }

  function take(got) {
    state.progress = got.progress;
    state.ahead = got.ahead ?? [];
    live = got.item;
  }

  // The questions, once: a field set each, of the same height on every item.
  function ask() {
    const { form } = state;
    root.classList.toggle("several", form.questions.length > 1);
    if (root.dataset.home !== "notebook") document.title = `Labelling – ${state.name ?? state.annotator}`;
    $(".who").textContent = state.name ?? state.annotator;
    $(".questions").replaceChildren(...form.questions.map(asked));
    const panel = $(".rubric"), seenRubric = own(`rubric-${form.rubric_version}`);
    panel.innerHTML = form.rubric;
    panel.prepend(button("Fold", "", () => { panel.hidden = true; kept.set(seenRubric, "folded"); fold(); }, "foldrubric"));
    panel.hidden = !form.rubric || kept.get(seenRubric) === "folded";
    $(".showrubric").hidden = !form.rubric;
    const option = (name, text, fallback) => {
      const node = make("input", { type: "checkbox", checked: kept.get(name) ? kept.get(name) === "on" : fallback });
      node.addEventListener("change", () => kept.set(name, node.checked ? "on" : "off"));
      return make("label", {}, node, ` ${text}`);
    };
    $(".help").replaceChildren(
      make("h2", {}, "Keys"),
      make("dl", {}, ...KEYS.flatMap(([key, what]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)])),
      option("stratal-keys", "Use the single-key shortcuts shown", true),
      option("stratal-at-once", "Submit as soon as every question has an answer", form.submit_on_choice),
      button("Close", "Esc", () => $(".help").close()));
  }

  // Of which any number of choices may be taken, none too.
  const anyNumber = (question) => ["several", "tags"].includes(question.kind);

  function asked(question, k) {
    const typed = question.kind === "number" || question.kind === "short-text" || (question.kind === "scale" && question.choices.length > MANY);
    const type = anyNumber(question) ? "checkbox" : "radio";
    const choices = typed ? [] : question.choices.map((choice) => {
      const input = make("input", { type, name: `choice-${k}-${state.study}`, value: choice.value });
      const node = make("label", { className: "choice" }, input, make("span", { dir: "auto" }, choice.label));
      if (choice.key && choice.key !== choice.label) node.append(make("kbd", {}, choice.key.toUpperCase()));
      input.addEventListener("click", (event) => { if (event.detail > 0) chosen(); });
      return node;
    });
    const name = question.kind === "classes" ? "Another class" : question.ends ? question.ends.join(" … ") : "Your answer";
    const free = typed || question.kind === "classes" ? [make("label", { className: "free" },
      make("span", {}, name, " ", make("kbd", {}, "/")),
      make("input", { type: "text", maxLength: 2000, dir: "auto", autocomplete: "off", inputMode: typed && question.kind !== "short-text" ? "decimal" : "text" }))] : [];
    const end = (text) => (question.ends && !typed ? [make("span", { className: "end", dir: "auto" }, text)] : []);
    const set = make("fieldset", { className: `question ${question.kind}` },
      make("legend", { dir: "auto" }, question.text),
      make("div", { className: "choices" }, ...end(question.ends?.[0]), ...choices, ...end(question.ends?.[1]), ...free));
    set.addEventListener("focusin", () => mark(k));
    return set;
  }

  // Where there is no room for all questions one is shown at a time.
  function turn(by) {
    for (let k = active + by; k >= 0 && k < sets().length; k += by) if (!sets()[k].disabled) { mark(k); return; }
  }

  const sets = () => [...$(".questions").querySelectorAll("fieldset")];
  const fields = (k) => [...sets()[k].querySelectorAll("input")];

  function mark(k) {
    active = k;
    sets().forEach((set, i) => set.classList.toggle("now", i === k && sets().length > 1));
    $(".which span").textContent = `Question ${k + 1} of ${sets().length}`;
  }

  function valueOf(question, k) {
    const typed = fields(k).find((node) => node.type === "text")?.value.trim();
    const ticked = fields(k).filter((node) => node.checked).map((node) => node.value);
    if (anyNumber(question)) return ticked;
    return typed || ticked[0] || null;
  }

  // The answers to the questions that are asked, by name; those without one are left out.
  function values() {
    const found = {};
    if (state === null) return found;
    for (const [k, question] of state.form.questions.entries()) {
      const value = sets()[k].disabled ? null : valueOf(question, k);
      if (value !== null && (!Array.isArray(value) || value.length)) found[question.name] = value;
    }
    return found;
  }

  // A question that waits for an answer to another one keeps its place, and cannot be answered before.
  function conditions() {
    for (const [k, question] of state.form.questions.entries()) {
      const [name, answer] = question.when ?? [];
      const met = !name || [values()[name]].flat().includes(answer);
      sets()[k].disabled = !met || shown === null;
    }
    mark(unanswered() < 0 ? active : unanswered());
  }

  const unanswered = () => state.form.questions.findIndex((question, k) => !sets()[k].disabled
    && !anyNumber(question) && question.kind !== "short-text" && valueOf(question, k) === null);

  const note = () => $(".note textarea").value;
  const seconds = () => (shown?.answer ? undefined : Math.round(watch.seconds() * 10) / 10);

  function chosen() {
    conditions(); keepDraft();
    const atOnce = kept.get("stratal-at-once") ? kept.get("stratal-at-once") === "on" : state.form.submit_on_choice;
    const simple = state.form.questions.every((question, k) => sets()[k].disabled || !(anyNumber(question) || ["short-text", "number"].includes(question.kind)));
    if (atOnce && simple && unanswered() < 0 && shown && !shown.answer && deciding === null) submit();
  }

  function submit() {
    if (shown === null) return away ? send() : open();
    const missing = unanswered();
    if (missing >= 0) {
      say(sets().length > 1 ? `Answer “${state.form.questions[missing].text}” first.` : "Choose an answer first.");
      mark(missing);
      return undefined;
    }
    const given = values();
    state.form.questions.forEach((question, k) => { if (anyNumber(question) && !sets()[k].disabled) given[question.name] ??= []; });
    const body = { item: shown.id, value: given, note: note() };
    if (deciding !== null) return act({ action: "adjudicate", ...body }, decide);
    return act({ action: "submit", ...body, seconds: seconds() }, advance("Saved."));
  }

  function skip() {
    if (shown === null) return undefined;
    if (deciding !== null) { deciding.queue.push(deciding.queue.shift()); nextDecision(); say("Moved to the end."); return undefined; }
    return act({ action: "skip", item: shown.id, note: note(), seconds: seconds() }, advance("Skipped."));
  }

  const advance = (text) => async (got) => {
    take(got);
    if (place > 0) { place -= 1; count(); await moveTo(trail[place].item); }
    else { place = -1; trail = []; await onward(); }
    say(away ? "Saved in this browser." : text);
  };

  // The item to label now; where there is none, the decisions that wait for this adjudicator.
  async function onward() {
    if (live !== null || !state.adjudicator || !state.progress.disagreements || away) { show(live); return; }
    const got = await transport.disagreements().catch(() => ({ mine: 0 }));
    if (got.mine > 0) startDeciding(got); else show(null);
  }

  async function undo() {
    if (deciding !== null) return takeBack();
    const last = transport.items ? undefined : box.all().filter((entry) => isAnswer(entry.body.action)).at(-1);
    if (transport.items && !local().said.length) { trouble("There is no action to undo."); return undefined; }
    if (last && !last.tried && seen.has(last.body.item)) {
      box.remove(last);
      const { answer: _, ...item } = seen.get(last.body.item);
      place = -1; trail = []; show(item); say("Undone.");
      return true;
    }
    if (last) { say("You can undo this when the server is available again."); return undefined; }
    return act({ action: "undo" }, (got) => { take(got); place = -1; trail = []; show(live); say("Undone."); });
  }

  function flag() {
    if (shown === null || deciding !== null) return undefined;
    const on = !shown.flagged;
    return act({ action: on ? "flag" : "unflag", item: shown.id }, (got) => {
      state.progress = got.progress;
      shown.flagged = on;
      if (live !== null && live.id === shown.id) live.flagged = on;
      $(".flag").setAttribute("aria-pressed", String(on));
      say(on ? "Flagged." : "Flag removed.");
    });
  }

  // A note on an item that is left without an answer is saved by itself.
  async function keepNote() {
    if (shown === null || deciding !== null) return true;
    const text = note(), { id, answer } = shown;
    if (!kept.get(draft()) || text === (answer?.note ?? "")) return true;
    const body = answer?.status === "submitted"
      ? { action: "submit", item: id, value: answer.value, note: text } : { action: "note", item: id, note: text };
    return act(body, () => {});
  }

  const moveTo = (id) => run(async () => show(alone() && seen.has(id) ? seen.get(id) : (await transport.item(id)).item));

  async function move(step) {
    if (deciding !== null || busy || !(await keepNote())) return;
    if (step < 0) {
      if (place + 1 >= trail.length) {
        const more = alone() ? { answers: waiting().slice(trail.length) } : await run(() => transport.trail(trail.at(-1)?.seq));
        if (more === undefined) return;
        trail = [...trail, ...more.answers];
      }
      if (place + 1 >= trail.length) { say(away ? "Earlier items are available only while the server is reachable." : "There is no earlier item."); return; }
      place += 1;
      await moveTo(trail[place].item);
    } else if (place > 0) {
      place -= 1;
      await moveTo(trail[place].item);
    } else if (place === 0) {
      place = -1; trail = [];
      if (alone()) show(local().item); else await open();
    }
  }

  const alone = () => away !== null || transport.items !== undefined;
  const waiting = () => [...new Set(local().said.reverse().map((body) => body.item))].map((item) => ({ item }));

  async function judge() {
    if (deciding !== null) { deciding = null; await open(false); return; }
    if (!(await keepNote())) return;
    await run(async () => startDeciding(await transport.disagreements()));
  }

  function startDeciding(got) {
    place = -1; trail = [];
    const queue = got.disagreements;
    deciding = { queue, at: 0, total: Math.max(got.mine || state.progress.disagreements, queue.length) };
    nextDecision();
  }

  function nextDecision() {
    const first = deciding.queue[0] ?? null;
    if (first === null) { deciding = null; show(live); say(state.progress.disagreements ? "You have made all your decisions. The remaining ones are for others." : "There are no more disagreements."); return; }
    show(first, first.answers);
  }

  async function decide(got) {
    take(got); decided = shown.id;
    deciding.queue = deciding.queue.filter((entry) => entry.id !== decided);
    deciding.at += 1;
    if (deciding.queue.length === 0 && deciding.at < deciding.total && !away) {
      const more = await run(() => transport.disagreements());
      deciding.queue = more?.disagreements ?? [];
    }
    nextDecision();
    if (deciding !== null) say(away ? "Saved in this browser." : "Decided.");
  }

  function takeBack() {
    if (decided === null) { say("There is no decision to undo."); return undefined; }
    return act({ action: "adjudicate", item: decided, value: null }, async (got) => {
      take(got); decided = null; deciding = null; await judge(); say("Decision undone.");
    });
  }

  const open = (deciding_too = true) => run(async () => {
    take(transport.items ? local() : await transport.state());
    if (deciding_too) await onward(); else show(live);
  });

  function unfold() { for (const node of root.querySelectorAll(".more")) node.click(); }
  function help() { $(".help").showModal(); $(".help").focus(); $(".help").scrollTop = 0; }
  function write() { $(".note").hidden = false; $(".note textarea").focus(); }
  function showRubric() { $(".rubric").hidden = !$(".rubric").hidden; kept.set(own(`rubric-${state.form.rubric_version}`), $(".rubric").hidden ? "folded" : ""); fold(); }

  function step(by) {
    const all = fields(active).filter((node) => node.type === "radio");
    if (!all.length || sets()[active].disabled) return;
    const now = all.findIndex((node) => node.checked), k = active;
    const next = all[now < 0 ? (by > 0 ? 0 : all.length - 1) : (now + by + all.length) % all.length];
    next.checked = true; next.focus({ preventScroll: true });
    conditions(); keepDraft(); mark(k);
  }

  function choose(k, value) {
    const node = fields(k).find((one) => one.value === value && one.type !== "text");
    if (!node || shown === null || sets()[k].disabled) return false;
    node.checked = node.type === "radio" || !node.checked;
    const free = fields(k).find((one) => one.type === "text");
    if (free) free.value = "";
    if (root.contains(document.activeElement)) node.focus({ preventScroll: true });
    const several = node.type === "checkbox";
    chosen();
    if (several) mark(k);
    return true;
  }

  const chooseKey = (key) => {
    const choice = state.form.questions[active]?.choices.find((one) => one.key && one.key === key);
    return Boolean(choice) && choose(active, choice.value);
  };

  const COMMANDS = {
    enter: submit, s: skip, backspace: skip, u: undo, f: flag, n: write,
    "/": () => { const free = sets().filter((set) => !set.disabled).flatMap((set) => [...set.querySelectorAll("input[type=text]")]); (free.find((node) => !node.value) ?? free[0])?.focus(); },
    arrowleft: () => move(-1), arrowright: () => move(1), arrowup: () => step(-1), arrowdown: () => step(1), ".": unfold,
    "?": help, escape: () => { if (deciding !== null) judge(); },
  };

  function pressed(event) {
    if (state === null || event.isComposing || $(".help").open) return;
    const key = event.key.toLowerCase(), at = event.target;
    if (at.matches?.("textarea, input[type=text]")) {
      if (key === "escape") { at.blur(); $(".item").focus({ preventScroll: true }); event.preventDefault(); }
      else if (key === "enter" && (event.ctrlKey || event.metaKey || at.matches("input"))) { event.preventDefault(); submit(); }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ((key === "enter" || key === " ") && at.matches?.("button, a, summary, audio")) return;
    if (at.matches?.("audio") && key.startsWith("arrow")) return;
    const single = event.key.length === 1 || key === "backspace";
    if (single && kept.get("stratal-keys") === "off") return;
    if (busy || (event.repeat && !key.startsWith("arrow"))) { event.preventDefault(); return; }
    const done = chooseKey(key) || COMMANDS[key];
    if (!done) return;
    event.preventDefault();
    if (typeof done === "function") done();
  }

  $(".buttons").append(
    make("button", { type: "submit", className: "submit" }, "Submit ", make("kbd", {}, "Enter")),
    button("Skip", "S", skip, "skip"), button("Undo", "U", () => undo(), "undo"), button("Flag", "F", flag, "flag"),
    button("Note", "N", write, "writes"), button("Earlier", "←", () => move(-1), "back"), button("Later", "→", () => move(1), "forward"));
  $(".tools").append(button("", "", judge, "judge"), button("Rubric", "", showRubric, "showrubric"), button("Help", "?", help), ...tools);
  $(".which").append(button("‹", "", () => turn(-1), "before"), make("span"), button("›", "", () => turn(1), "after"));
  $(".which .before").ariaLabel = "Previous question"; $(".which .after").ariaLabel = "Next question";
  $(".bar").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  $(".bar").addEventListener("input", () => { conditions(); keepDraft(); });
  $(".judge").hidden = true; $(".showrubric").hidden = true;
  keys.addEventListener("keydown", pressed);
  const back = () => { if (away) send(); };
  addEventListener("online", back);
  const elsewhere = () => { if (box) count(); }; // another window of this browser added or sent what waits
  addEventListener("storage", elsewhere);
  addEventListener("beforeunload", (event) => { if (box && !box.lasting()) event.preventDefault(); });

  // What waited in the browser since the page was closed is sent first.
  async function start() {
    const got = await run(() => transport.state());
    if (got === undefined) { setTimeout(start, PAUSES[Math.min(failures++, PAUSES.length - 1)]); return; }
    failures = 0;
    state = got; box = transport.box ?? outbox(`${own("waits")}:`);
    take(got);
    ask();
    if (box.all().length && !transport.items) await send();
    if (alone()) take(local());
    await onward();
    $(".item").focus({ preventScroll: true });
  }
  start();
  return { say, close: () => { keys.removeEventListener("keydown", pressed); removeEventListener("online", back); removeEventListener("storage", elsewhere); clearTimeout(timer); } };
}
