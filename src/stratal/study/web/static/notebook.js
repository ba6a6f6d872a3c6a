// The page in a notebook: asks the kernel instead of a server, and keeps its keys to itself.
import { annotate } from "./annotate.js";
import { make, request } from "./parts.js";

const PATIENCE = 8000;

function render({ model, el }) {
  const waiting = new Map();
  const ask = (what, body = null) => new Promise((done, fail) => {
    const id = request();
    const late = { id, error: { message: "The kernel does not respond." } };
    waiting.set(id, { done, fail, timer: setTimeout(() => heard(late), PATIENCE) });
    model.send({ id, what, body });
  });
  const heard = (message) => {
    const asked = waiting.get(message?.id);
    if (!asked) return;
    waiting.delete(message.id);
    clearTimeout(asked.timer);
    if (message.error) asked.fail(Object.assign(new Error(message.error.message), { kind: message.error.kind }));
    else asked.done(message.answer);
  };
  model.on("msg:custom", heard);
  const root = make("div", { className: "stratal", tabIndex: 0, role: "region", ariaLabel: "Labelling" });
  Object.assign(root.dataset, { home: "notebook", lmSuppressShortcuts: "true" });
  el.append(root);
  const page = annotate(root, {
    state: () => ask("state"),
    item: (id) => ask("item", id),
    trail: (before) => ask("trail", before ?? null),
    disagreements: () => ask("disagreements"),
    act: (body) => ask("act", body),
  }, { keys: root });
  root.addEventListener("keydown", (event) => event.stopPropagation());
  return () => { page.close(); model.off("msg:custom", heard); };
}

export default { render };
