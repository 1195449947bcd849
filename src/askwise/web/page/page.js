// The page: which view the address names, the tools at the top, the keyboard, and what to do when a call fails.

import { getSelector, hasToken, setToken } from "./api.js";
import { announce, ask, byId, h, show } from "./dom.js";
import { caseView, commands, leaveCase } from "./case.js";
import { caseList, focusSearch } from "./list.js";
import { recall, remember } from "./memory.js";
import { monitorView } from "./monitor.js";
import { newCase } from "./start.js";
import { chooseLanguage, language, loadLanguage, setCurrency, t } from "./words.js";

const SHORTCUTS = [
  ["S", "key search"], ["N", "key new"], ["L", "key list"], ["U", "key undo"], ["X", "key unavailable"], ["W", "key why"],
  ["O", "key others"], ["G", "key suggested"], ["C", "key finish"], ["P", "key print"], ["K", "key help"],
];
let selector = null;

/** Show the view that the address names. */
async function route() {
  try {
    selector ??= await getSelector();
  } catch (error) {
    return fail(error);
  }
  setCurrency(selector.currency);
  byId("logout-button").hidden = !hasToken();
  byId("who").hidden = selector.you.name === "local";
  byId("who").textContent = `${selector.you.name} (${selector.you.role})`;
  const [, place, id] = location.hash.split("/");
  if (place !== "case") leaveCase();
  document.title = "askwise";
  if (place === "case" && id) return caseView(decodeURIComponent(id), selector, fail);
  if (place === "new") return newCase(selector, fail);
  if (place === "monitor") await monitorView(fail);
  else await caseList(selector, fail);
  return byId("title")?.focus();
}

/** Say what went wrong, in `box` or instead of the view; ask for the token where the server wants one. */
function fail(error, box = null) {
  if (error.status === 401) return login();
  const known = { 0: "offline", 403: "forbidden", 404: "not found", 413: "too large", 429: "too many" }[error.status];
  const text = h("p", {}, known ? t(known) : t("failed"), " ", known || !error.message ? "" : h("span", { lang: "en" }, error.message));
  const notice = h("div", { class: "notice bad", role: "alert" }, text,
    box ? null : h("p", { class: "actions" }, h("button", { type: "button", onclick: route }, t("try again")),
      h("a", { class: "button", href: "#/" }, t("cases"))));
  if (box) box.replaceChildren(notice);
  else show(h("div", { class: "view narrow" }, h("h1", { id: "title", tabindex: "-1" }, t("problem")), notice));
  return box?.scrollIntoView({ block: "nearest" });
}

function login() {
  const refused = hasToken();
  setToken(null);
  byId("logout-button").hidden = true;
  byId("who").hidden = true;
  const input = h("input", { id: "token", type: "password", autocomplete: "current-password", required: true, "aria-describedby": "token-hint" });
  show(h("form", {
    class: "view narrow card login",
    onsubmit: (event) => { event.preventDefault(); setToken(input.value.trim()); selector = null; route(); },
  },
  h("h1", { id: "title", tabindex: "-1" }, t("login")),
  refused ? h("p", { class: "notice bad", role: "alert" }, t("wrong token")) : null,
  h("label", { for: "token" }, t("token")), input, h("p", { class: "hint", id: "token-hint" }, t("token hint")),
  h("p", { class: "actions" }, h("button", { class: "primary" }, t("log in")))));
  input.focus();
}

function logout() {
  setToken(null);
  selector = null;
  leaveCase();
  location.hash = "#/";
  route();
}

const dark = () => document.documentElement.dataset.theme === "dark"; // set by theme.js

function switchTheme() {
  const theme = dark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  remember("theme", theme);
  tools();
  announce(t(`theme is ${theme}`));
}

/** The words of the tools, which outlive the views. */
function tools() {
  byId("skip").textContent = t("skip");
  byId("tools").setAttribute("aria-label", t("tools"));
  byId("help-button").textContent = t("keys");
  byId("theme-button").textContent = t(dark() ? "to light" : "to dark");
  byId("logout-button").textContent = t("log out");
  byId("language").setAttribute("aria-label", t("language"));
  byId("language").value = language();
}

function help() {
  ask({
    title: t("keys"),
    body: h("div", {}, h("dl", { class: "keys" },
      SHORTCUTS.map(([key, text]) => h("div", {}, h("dt", {}, h("kbd", {}, "Alt"), " + ", h("kbd", {}, key)), h("dd", {}, t(text)))),
      h("div", {}, h("dt", {}, h("kbd", {}, "Enter")), h("dd", {}, t("key enter")))),
      h("p", { class: "hint" }, t("key mac"))),
    buttons: [["", t("close")]],
  });
}

const ACTIONS = {
  S: () => (byId("search") ? focusSearch() : (location.hash = "#/")),
  N: () => { location.hash = "#/new"; },
  L: () => { location.hash = "#/"; },
  U: () => commands().undo?.(),
  X: () => commands().unavailable?.(),
  W: () => commands().why?.(),
  O: () => commands().others?.(),
  G: () => commands().suggested?.(),
  C: () => commands().finish?.(),
  P: () => commands().print?.(),
  K: help,
};

function shortcut(event) {
  if (!event.altKey || event.ctrlKey || event.metaKey || document.querySelector("dialog")) return;
  const letter = /^[a-z]$/i.test(event.key) ? event.key.toUpperCase() : event.code.replace("Key", ""); // Macs type signs
  const action = ACTIONS[letter];
  if (!action) return;
  event.preventDefault();
  action();
}

async function begin() {
  await loadLanguage(recall("language") ?? undefined);
  tools();
  byId("help-button").addEventListener("click", help);
  byId("theme-button").addEventListener("click", switchTheme);
  byId("logout-button").addEventListener("click", logout);
  byId("language").addEventListener("change", async (event) => {
    await chooseLanguage(event.target.value);
    tools();
    await route();
    byId("language").focus();
  });
  byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tools);
  document.addEventListener("keydown", shortcut);
  window.addEventListener("hashchange", route);
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((box) => { box.open = true; }));
  await route();
}

begin();
