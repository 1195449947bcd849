// One case: what to ask next, what the model says so far, and every step that led there.

import { deleteCase, getCase, sendEvent, trailFile } from "./api.js";
import { announce, ask, byId, h, show } from "./dom.js";
import { adviceCard, nextCard, pendingCard, ranking } from "./next.js";
import { budgetCard, checkNotice, predictionCard, stepsCard, unlike } from "./sofar.js";
import { date, percent, shown, t } from "./words.js";

let view = null; // the case on the screen

/** Show a case; what was typed for it is kept when it is shown again. */
export async function caseView(id, selector, fail) {
  const drafts = view?.id === id ? view.drafts : {};
  view = { id, selector, fail, drafts, chosen: view?.id === id ? view.chosen : null, notice: null };
  const mine = view;
  try {
    mine.case = await getCase(id);
    mine.namesakes = mine.case.same_name ?? [];
  } catch (error) {
    return fail(error);
  }
  if (mine === view) draw();
}

export const leaveCase = () => { view = null; };

/** What the keyboard shortcuts do, while a case is on the screen. */
export const commands = () => (view?.case ? {
  undo: () => byId("undo")?.click(),
  unavailable: () => byId("unavailable")?.click(),
  why: () => { const why = byId("why"); if (why) { why.open = !why.open; why.querySelector("summary").focus(); } },
  others: () => document.querySelector(".others button")?.focus(),
  suggested: () => byId("suggested")?.click(),
  finish: () => (byId("finish") ?? byId("reopen"))?.click(),
  print: () => window.print(),
} : {});

const spec = (name) => view.selector.features.find((feature) => feature.name === name);
const labelOf = (name) => spec(name)?.label || name;

/** Draw the case and put the focus where the next step begins. */
function draw(focus = "answer") {
  const { case: one, selector } = view;
  const { report } = one;
  document.title = `${one.label || t("no label")} – askwise`;
  const open = one.state === "open";
  const feature = open ? (view.chosen ?? report.suggestion) : null;
  const next = feature && spec(feature) ? nextCard(context(feature)) : null;
  show(h("div", { class: "view case" },
    header(one), view.notice, namesakes(view.namesakes), checkNotice(one),
    h("div", { class: "columns" },
      h("div", { class: "work" },
        adviceCard(context(feature)), next?.node, open ? pendingCard(context(feature)) : null, open ? ranking(context(feature)) : null,
        stepsCard(one, spec, undoButton(one))),
      h("div", { class: "now" },
        predictionCard(report, selector.classes, selector.guarantee?.coverage, labelOf), budgetCard(report))),
    footer(one, selector)));
  view.next = next;
  const target = focus === "answer" ? (next ?? byId("advice")) : byId(focus);
  (target ?? byId("title")).focus();
}

const context = (feature) => ({
  one: view.case, report: view.case.report, selector: view.selector, feature, spec, labelOf,
  draft: feature ? (view.drafts[feature] ??= {}) : {},
  choose, send, answer,
});

function header(one) {
  return h("div", { class: "head" },
    h("div", { class: "title" },
      h("p", { class: "crumb" }, h("a", { href: "#/" }, `← ${t("cases")}`)),
      h("h1", { id: "title", tabindex: "-1" }, one.label || t("no label")),
      h("p", { class: "hint" }, h("span", { class: `tag ${one.state}` }, t(`state ${one.state}`)), " ",
        t("started", { date: date(one.created), by: one.by ? t("by", { name: one.by }) : "" }))),
    one.state === "finished"
      ? h("button", { type: "button", id: "reopen", class: "primary", onclick: () => send({ type: "reopen" }) }, t("reopen"))
      : one.advice === "ask" && h("button", { type: "button", id: "finish", onclick: () => send({ type: "finish" }) }, t("finish")));
}

/** Two people may have started the same case: say so, and offer the other one. */
function namesakes(ids) {
  if (!ids.length) return null;
  return h("p", { class: "notice warn", id: "namesakes" }, t("same name", { count: ids.length }), " ",
    h("a", { href: `#/case/${encodeURIComponent(ids[0])}` }, t("same name look")));
}

function undoButton(one) {
  const last = one.report.trace.at(-1);
  if (one.state !== "open" || !last || last.event === "start") return null;
  return h("button", { type: "button", id: "undo", class: "small", onclick: () => send({ type: "undo" }) },
    t("undo", { test: labelOf(last.feature) }));
}

function footer(one, selector) {
  return h("footer", { class: "foot" },
    h("p", { class: "actions" },
      h("button", { type: "button", class: "small", onclick: () => window.print() }, t("print")),
      ["csv", "json"].map((format) => h("button", { type: "button", class: "small", onclick: () => download(format) },
        t("trail", { format: format.toUpperCase() }))),
      selector.you?.role !== "admin" ? null
        : h("button", { type: "button", class: "small danger", id: "delete", onclick: remove }, t("delete"))),
    h("p", { class: "hint" }, t("versions", { askwise: selector.versions?.askwise ?? "?", model: selector.versions?.model ?? "?" })));
}

function choose(feature) {
  view.chosen = feature === view.case.report.suggestion ? null : feature;
  view.notice = null;
  draw();
  announce(t("chosen", { test: labelOf(feature ?? view.case.report.suggestion) }));
}

async function answer(value, feature, confirmed) {
  await send({ type: "answer", feature, value, ...(confirmed ? { confirmed: true } : {}) });
}

/** Send an event. A newer state, a refusal or a lost connection keeps what was typed. */
async function send(event) {
  const mine = view;
  if (mine.busy) return;
  mine.busy = true;
  byId("main").classList.add("busy");
  try {
    const newer = await sendEvent(mine.id, { ...event, version: mine.case.version });
    if (mine !== view) return;
    accept(event, newer);
  } catch (error) {
    if (mine === view) refused(error, event);
  } finally {
    mine.busy = false;
    byId("main").classList.remove("busy");
  }
}

function accept(event, newer) {
  view.case = newer;
  view.chosen = null;
  view.notice = null;
  if (event.feature) delete view.drafts[event.feature];
  draw(event.type === "reopen" || event.type === "finish" ? "title" : "answer");
  const { report } = newer;
  const now = t("now", { prediction: report.prediction, share: unlike(report) ? t("unreliable") : percent(report.probabilities[String(report.prediction)]) });
  const next = report.suggestion && newer.state === "open" ? t("next is", { test: labelOf(report.suggestion) }) : t(`advice ${newer.advice}`);
  announce(`${t(`done ${event.type}`)} ${now} ${next}`);
}

function refused(error, event) {
  if (error.status === 409 && error.case) return overtaken(error.case, event);
  if (error.status === 428 && view.next) return view.next.warn(error.message, event.value);
  if (error.status === 422 && event.type === "answer" && view.next) return view.next.complain(error.message, error.field);
  return view.fail(error, noticeBox());
}

/** Somebody else was faster: show what is stored now, and keep what was typed. */
function overtaken(newer, event) {
  view.case = newer;
  const { known, unavailable } = newer.report;
  const pending = event.type === "answer";
  const open = pending && newer.state === "open" && !(event.feature in known) && !unavailable.includes(event.feature);
  view.chosen = open && event.feature !== newer.report.suggestion ? event.feature : null;
  const typed = pending ? { test: labelOf(event.feature), value: shown(event.value, spec(event.feature)?.unit) } : null;
  view.notice = h("div", { class: "notice warn", role: "alert" },
    h("p", {}, h("strong", {}, t("overtaken")), " ",
      typed ? t(open ? "still typed" : "typed in vain", typed) : t("not done")));
  draw(open ? "answer" : "title");
}

function noticeBox() {
  view.notice = h("div");
  byId("main").querySelector(".head").after(view.notice);
  return view.notice;
}

async function download(format) {
  try {
    const address = URL.createObjectURL(await trailFile(view.id, format));
    h("a", { href: address, download: `trail-${view.id}.${format}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  } catch (error) {
    view.fail(error, noticeBox());
  }
}

async function remove() {
  const reply = await ask({
    title: t("delete title", { label: view.case.label || t("no label") }),
    body: h("p", {}, t("delete text")),
    buttons: [["", t("cancel")], ["delete", t("delete for good"), "danger"]],
  });
  if (reply !== "delete") return;
  try {
    await deleteCase(view.id);
    announce(t("deleted"));
    location.hash = "#/";
  } catch (error) {
    view.fail(error, noticeBox());
  }
}
