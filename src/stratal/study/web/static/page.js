// The page of the server. A request that fails is tried again with the same request id, so that nothing is saved
// twice; an act that fails waits in the page's outbox.
import { annotate } from "./annotate.js";
import { final } from "./parts.js";

const PAUSES = [300, 900];
const PATIENCE = 8000; // longer than the server waits for its database
const pause = (time) => new Promise((done) => setTimeout(done, time));

async function once(path, body) {
  const sent = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  try {
    const answer = await fetch(path, { ...sent, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(PATIENCE) });
    const said = await answer.json().catch(() => ({}));
    if (answer.ok) return said;
    throw Object.assign(new Error(said.error?.message ?? `The server says ${answer.status}.`), { kind: said.error?.kind ?? "failed" });
  } catch (error) {
    throw error.kind ? error : new Error("The server does not answer.");
  }
}

async function ask(path) {
  for (const time of PAUSES) {
    try {
      return await once(path);
    } catch (error) {
      if (final(error)) throw error;
      await pause(time);
    }
  }
  return once(path);
}

annotate(document.getElementById("root"), {
  state: () => ask("api/state"),
  item: (id) => ask(`api/item?id=${encodeURIComponent(id)}`),
  trail: (before) => ask(before === undefined ? "api/trail" : `api/trail?before=${before}`),
  disagreements: () => ask("api/disagreements"),
  act: (body) => once("api/act", body),
}, { keys: document });
