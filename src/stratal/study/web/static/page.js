// The page of the server: every request is tried again while the server is busy or does not answer, always
// with the same request id, so that nothing is saved twice.
import { annotate } from "./annotate.js";

const PAUSES = [300, 900, 2000];
const PATIENCE = 15000; // longer than the server waits for its database
const pause = (time) => new Promise((done) => setTimeout(done, time));

async function once(path, body) {
  const sent = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const signal = AbortSignal.timeout(PATIENCE);
  const answer = await fetch(path, { ...sent, cache: "no-store", credentials: "omit", signal });
  const said = await answer.json().catch(() => ({}));
  if (answer.ok) return said;
  const error = new Error(said.error?.message ?? `The server says ${answer.status}.`);
  error.kind = said.error?.kind ?? "failed";
  error.again = answer.status === 503 || answer.status === 429;
  throw error;
}

async function ask(path, body) {
  for (const time of [...PAUSES, null]) {
    try {
      return await once(path, body);
    } catch (error) {
      const unreachable = error instanceof TypeError, silent = error.name === "TimeoutError";
      if (time === null || !(unreachable || error.again)) {
        throw unreachable || silent ? new Error("The server does not answer. What you entered is still here.") : error;
      }
      await pause(time);
    }
  }
}

annotate(document.getElementById("root"), {
  state: () => ask("api/state"),
  item: (id) => ask(`api/item?id=${encodeURIComponent(id)}`),
  trail: (before) => ask(before === undefined ? "api/trail" : `api/trail?before=${before}`),
  disagreements: () => ask("api/disagreements"),
  act: (body) => ask("api/act", body),
}, { keys: document });
