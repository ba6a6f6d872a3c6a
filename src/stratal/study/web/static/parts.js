// What the page is made of: its frame, its keys, and small things that know nothing of a study.

export const SKELETON = `
<div class="top"><h1 class="unseen">Labelling</h1>
  <p class="count"></p><progress max="1" value="0" aria-label="Your progress"></progress><p class="time"></p>
  <p class="who" dir="auto"></p><div class="tools"></div>
</div>
<div class="middle">
  <section class="item" aria-label="Item" tabindex="-1"></section>
  <section class="rubric" aria-label="How to judge" tabindex="0" hidden></section>
</div>
<form class="bar" novalidate>
  <div class="messages"><p class="banner" role="alert" hidden></p><p class="said" role="status"></p><p class="waiting" hidden></p></div>
  <label class="note" hidden>Note <kbd>N</kbd><textarea rows="2" maxlength="10000" dir="auto"></textarea></label>
  <div class="which"></div><div class="questions" tabindex="-1"></div>
  <div class="buttons"></div>
</form>
<dialog class="help" aria-label="Help and keys" tabindex="-1" autofocus></dialog>`;

export const KEYS = [
  ["1, 2, …", "choose an answer to the highlighted question (the key is shown next to it)"], ["↑ ↓", "previous or next choice"],
  ["Tab", "next question"], ["Enter", "submit"], ["S or Backspace", "skip"], ["U", "undo: withdraw your last answer"],
  ["← →", "previous or next item; submit it again to change your answer"], ["F", "flag the item, or remove the flag"],
  ["N", "write a note (Esc leaves the note, Ctrl+Enter submits)"], ["/", "type an answer in your own words"],
  [".", "expand long texts"], ["?", "this help"],
];

export function make(tag, fields = {}, ...children) {
  const node = Object.assign(document.createElement(tag), fields);
  node.append(...children);
  return node;
}

// A text that no other act has: of this page, and its number, so that of two acts on an item the later is known
// even if the earlier one arrives last.
const PAGE = Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
let requests = 0;
export function request() {
  requests += 1;
  return `${PAGE}-${requests}`;
}

export function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

// Seconds during which the page was looked at.
export function stopwatch() {
  let total = 0, since = document.hidden ? null : performance.now();
  const hide = () => {
    if (document.hidden && since !== null) { total += performance.now() - since; since = null; }
    else if (!document.hidden && since === null) since = performance.now();
  };
  document.addEventListener("visibilitychange", hide);
  return { start() { total = 0; since = document.hidden ? null : performance.now(); },
    seconds: () => (total + (since === null ? 0 : performance.now() - since)) / 1000 };
}

// Whether sending the same again would be refused again.
export const final = (error) => ["refused", "missing", "input"].includes(error.kind);

// Drafts and settings; kept by the browser where it lets us.
export const kept = {
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) {
    try { if (value) localStorage.setItem(name, value); else localStorage.removeItem(name); } catch { /* none */ }
  },
};

// Whether it does; a storage that fails later is full.
export const KEEPS = (() => {
  try { localStorage.setItem("stratal", "1"); localStorage.removeItem("stratal"); return true; } catch { return false; }
})();

// Acts that wait for the server, each under a name of its own in the browser's storage, so that two windows never
// write over each other's. What the storage does not take is kept by the page, as long as it is open.
export function outbox(prefix) {
  const memory = new Map();
  const names = () => { try { return Object.keys(localStorage).filter((name) => name.startsWith(prefix)); } catch { return []; } };
  const all = () => [...names().map((name) => JSON.parse(kept.get(name) ?? "null")).filter(Boolean), ...memory.values()]
    .sort((one, other) => one.number - other.number || (one.body.request < other.body.request ? -1 : 1));
  const put = (entry) => {
    const name = prefix + entry.body.request, text = JSON.stringify(entry);
    kept.set(name, text);
    if (kept.get(name) === text) memory.delete(name); else memory.set(name, entry);
    return entry;
  };
  return {
    all,
    add: (body) => put({ number: (all().at(-1)?.number ?? 0) + 1, tried: false, body }),
    try: (entry) => put({ ...entry, tried: true }),
    remove: (entry) => { kept.set(prefix + entry.body.request, ""); memory.delete(prefix + entry.body.request); },
    lasting: () => memory.size === 0,
  };
}
