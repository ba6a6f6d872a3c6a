// The page of the server: an act that fails waits in the page's outbox, and is sent again with the same request id.
import { annotate } from "./annotate.js";

const PATIENCE = 8000; // longer than the server waits for its database

async function once(path, body) {
  const headers = { "content-type": "application/json" };
  const sent = body === undefined ? {} : { method: "POST", headers, body: JSON.stringify(body) };
  try {
    const answer = await fetch(path, { ...sent, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(PATIENCE) });
    const said = await answer.json().catch(() => ({}));
    if (answer.ok) return said;
    throw Object.assign(new Error(said.error?.message ?? `The server returned status ${answer.status}.`), { kind: said.error?.kind ?? "failed" });
  } catch (error) {
    throw error.kind ? error : new Error("The server does not respond.");
  }
}

annotate(document.getElementById("root"), {
  state: () => once("api/state"),
  item: (id) => once(`api/item?id=${encodeURIComponent(id)}`),
  trail: (before) => once(before === undefined ? "api/trail" : `api/trail?before=${before}`),
  disagreements: () => once("api/disagreements"),
  act: (body) => once("api/act", body),
}, { keys: document });
