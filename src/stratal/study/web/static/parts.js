// What the page is made of: its frame, its keys, and small things that know nothing of a study.

export const SKELETON = `
<header class="bar">
  <p class="count"></p><progress max="1" value="0" aria-label="Progress of the study"></progress><p class="time"></p>
  <div class="tools"></div>
</header>
<div class="banner" role="alert" hidden></div>
<h1 class="question" dir="auto"></h1>
<section class="item" aria-label="Item" tabindex="-1"></section>
<form class="answer" novalidate>
  <fieldset class="choices"><legend>Your answer</legend></fieldset>
  <label class="free" hidden>Another class <kbd>/</kbd><input type="text" maxlength="200" dir="auto" autocomplete="off"></label>
  <label class="note">Note <kbd>N</kbd><textarea rows="2" maxlength="10000" dir="auto"></textarea></label>
  <div class="buttons"></div>
</form>
<p class="said" role="status"></p>
<dialog class="help" aria-label="Help and keys" tabindex="-1" autofocus></dialog>`;

export const KEYS = [
  ["1, 2, …", "choose an answer (the key stands beside it)"], ["↑ ↓", "the choice above or below"],
  ["Enter", "submit"], ["S or Backspace", "skip"], ["U", "undo: take your last answer back"],
  ["← →", "earlier and later items; submit again there to change an answer"], ["F", "flag, or take the flag away"],
  ["N", "write a note (Esc leaves it, Ctrl+Enter submits)"], ["/", "type a class of your own, where that is asked"],
  [".", "unfold long texts"], ["?", "this help"],
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

// Notes that are not saved yet, and settings; kept by the browser where it lets us.
export const kept = {
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) {
    try { if (value) localStorage.setItem(name, value); else localStorage.removeItem(name); } catch { /* none */ }
  },
};
