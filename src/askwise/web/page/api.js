// The HTTP interface of the server. A refused call throws a `Refused` with the status and what the server said.

import { recall, remember } from "./memory.js";

export class Refused extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? (typeof body?.error === "string" ? body.error : ""));
    this.status = status;
    this.field = body?.error?.field ?? null;
    this.case = body?.case ?? null;
  }
}

let token = recall("token", "sessionStorage");

export function setToken(text) {
  token = text;
  remember("token", text, "sessionStorage");
}

export const hasToken = () => Boolean(token);

/** A key for one intent: sent again with it, the same call is done once. */
export const newKey = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

async function call(method, path, body, key) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  let reply;
  try {
    reply = await fetch(`api/${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Refused(0, null); // the server cannot be reached
  }
  if (reply.ok) return reply;
  throw new Refused(reply.status, await reply.json().catch(() => null));
}

const json = async (...call_) => (await call(...call_)).json();
const theCase = (body) => body.case ?? body;
const place = (id) => `cases/${encodeURIComponent(id)}`;

export const getSelector = () => json("GET", "selector");
export const listCases = (query) => json("GET", `cases?${new URLSearchParams(query)}`);
export const getCase = async (id) => theCase(await json("GET", place(id)));
export const startCase = async (body, key) => theCase(await json("POST", "cases", body, key));
export const sendEvent = async (id, event, key) => theCase(await json("POST", `${place(id)}/events`, event, key));
export const deleteCase = (id) => call("DELETE", place(id));

/** The audit trail of a case as a file. */
export const trailFile = async (id, format) => (await call("GET", `${place(id)}/trail?format=${format}`)).blob();
