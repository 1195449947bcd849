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

const newKey = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

let unanswered = null; // a call whose answer was lost: sent again with the same key, it is done once

async function call(method, path, body) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const text = body === undefined ? undefined : JSON.stringify(body);
  if (text) {
    if (unanswered?.text !== path + text) unanswered = { text: path + text, key: newKey() };
    headers["Content-Type"] = "application/json";
    headers["Idempotency-Key"] = unanswered.key;
  }
  let reply;
  try {
    reply = await fetch(`api/${path}`, { method, headers, body: text });
  } catch {
    throw new Refused(0, null); // the server cannot be reached
  }
  if (text) unanswered = null;
  if (reply.ok) return reply;
  throw new Refused(reply.status, await reply.json().catch(() => null));
}

const json = async (...call_) => (await call(...call_)).json();
const place = (id) => `cases/${encodeURIComponent(id)}`;

export const getSelector = () => json("GET", "selector");
export const getMonitor = () => json("GET", "monitor");
export const listCases = (query) => json("GET", `cases?${new URLSearchParams(query)}`);
export const getCase = (id) => json("GET", place(id));
export const getWhy = (id) => json("GET", `${place(id)}/why`);
export const startCase = (body) => json("POST", "cases", body);
export const sendEvent = (id, event) => json("POST", `${place(id)}/events`, event);
export const deleteCase = (id) => call("DELETE", place(id));

/** The audit trail of a case as a file. */
export const trailFile = async (id, format) => (await call("GET", `${place(id)}/trail?format=${format}`)).blob();
