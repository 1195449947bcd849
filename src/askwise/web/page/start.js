// A new case: its name, what is known already, and a budget.

import { startCase } from "./api.js";
import { h, show } from "./dom.js";
import { field, unusual } from "./fields.js";
import { moneySign, money, number, t } from "./words.js";
import { warning } from "./warning.js";

const MANY = 20; // tests from which on they can be searched
const drafts = {}; // survives a login or a change of language, until the case is started

export function newCase(selector, fail) {
  drafts.values ??= {};
  const label = h("input", { id: "label", type: "text", autocomplete: "off", maxlength: "200", "aria-describedby": "label-hint" });
  label.value = drafts.label ?? "";
  const budget = field(
    { name: "budget", kind: "number", unit: moneySign(), label: t("budget") }, drafts, { legend: t("budget") });
  drafts.budget ?? (drafts.budget = selector.budget === null || selector.budget === undefined ? "" : number(selector.budget));
  budget.node.querySelector("input").value = drafts.budget;
  const deadline = h("input", { id: "deadline", type: "time", "aria-describedby": "deadline-hint" });
  deadline.value = drafts.deadline ?? "";
  deadline.addEventListener("input", () => { drafts.deadline = deadline.value; });
  const fields = selector.features.map((feature) => ({ feature, ...field(feature, drafts.values[feature.name] ??= {}) }));
  const notice = h("div");

  async function submit(confirmed = false) {
    const read = fields.map((one) => ({ name: one.feature.name, ...one.read() }));
    const money_ = budget.read();
    const wrong = read.find((one) => one.problem) ?? (money_.problem ? money_ : null);
    if (wrong) return wrong.focus();
    const known = Object.fromEntries(read.filter((one) => !one.empty).map((one) => [one.name, one.value]));
    const body = { label: label.value.trim(), known, budget: money_.empty ? null : money_.value };
    if (deadline.value) body.deadline = hoursUntil(deadline.value);
    if (confirmed) body.confirmed = true;
    form.inert = true;
    try {
      const started = await startCase(body);
      for (const name of Object.keys(drafts)) delete drafts[name];
      location.hash = `#/case/${encodeURIComponent(started.id)}`;
    } catch (error) {
      form.inert = false;
      refused(error, known);
    }
  }

  function refused(error, known) {
    const name = (error.field ?? "").replace(/^known\./, "");
    const found = fields.find((one) => one.feature.name === name) ?? (name === "budget" ? budget : null);
    if (error.status === 428) {
      const texts = fields.flatMap(({ feature }) => (feature.name in known ? unusual(feature, known[feature.name]) : []));
      const box = warning(texts, error.message, () => submit(true), () => { notice.replaceChildren(); (found ?? budget).focus(); });
      notice.replaceChildren(box.node);
      return box.focus();
    }
    if (error.status !== 422 || !found) return fail(error, notice);
    found.complain(error.message);
    return found.focus();
  }

  const form = h("form", { class: "view start", onsubmit: (event) => { event.preventDefault(); submit(); } },
    h("h1", { tabindex: "-1", id: "title" }, t("new case")),
    h("section", { class: "card" },
      h("div", { class: "pair" },
        h("div", { class: "typed" }, h("label", { for: "label" }, t("label")), label,
          h("span", { class: "hint", id: "label-hint" }, t("label hint"))),
        h("div", {}, budget.node, h("span", { class: "hint" }, t("budget hint", { total: money(selector.everything) })))),
      selector.features.some((feature) => feature.hours) ? h("div", { class: "typed" }, h("label", { for: "deadline" }, t("deadline")), deadline,
        h("span", { class: "hint", id: "deadline-hint" }, t("deadline hint"))) : null),
    h("section", { class: "card" },
      h("h2", {}, t("known already")), h("p", { class: "hint" }, t("known hint")),
      selector.guarantee ? h("p", { class: "hint" }, t("known voids")) : null,
      fields.length > MANY ? finder(fields) : null,
      h("div", { class: "grid" }, fields.map((one) => one.node))),
    notice,
    h("p", { class: "actions" }, h("button", { class: "primary" }, t("start case")),
      h("a", { class: "button", href: "#/" }, t("cancel"))));
  label.addEventListener("input", () => { drafts.label = label.value; });
  show(form);
  label.focus();
}

/** Hours from now until the next time that the clock shows `time`, such as 16:00. */
function hoursUntil(time) {
  const [hours, minutes] = time.split(":").map(Number);
  const then = new Date();
  then.setHours(hours, minutes, 0, 0);
  if (then < new Date()) then.setDate(then.getDate() + 1);
  return (then - new Date()) / 3600000;
}

/** A search among many tests; those that do not match are hidden. */
function finder(fields) {
  const search = h("input", { type: "search", placeholder: t("find"), "aria-label": t("find"), autocomplete: "off" });
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    fields.forEach(({ feature, node }) => { node.hidden = !`${feature.label} ${feature.name}`.toLowerCase().includes(wanted); });
  });
  return search;
}
