// A new case: its name, what is known already, and a budget.

import { startCase } from "./api.js";
import { h, show } from "./dom.js";
import { field, unusual } from "./fields.js";
import { amount, number, resourceName, t, unitOf } from "./words.js";
import { warning } from "./warning.js";

const MANY = 20; // tests from which on they can be searched
const drafts = {}; // survives a login or a change of language, until the case is started

export function newCase(selector, fail) {
  drafts.values ??= {};
  const label = h("input", { id: "label", type: "text", autocomplete: "off", maxlength: "200", "aria-describedby": "label-hint" });
  label.value = drafts.label ?? "";
  const own = typeof selector.budget === "number" ? { money: selector.budget } : selector.budget ?? {};
  const limits = selector.resources.map((resource) => limit(resource, own[resource], selector));
  const budget = limits[0];
  const deadline = h("input", { id: "deadline", type: "time", "aria-describedby": "deadline-hint" });
  deadline.value = drafts.deadline ?? "";
  deadline.addEventListener("input", () => { drafts.deadline = deadline.value; });
  const fields = selector.features.map((feature) => ({ feature, ...field(feature, drafts.values[feature.name] ??= {}) }));
  const notice = h("div");

  async function submit(confirmed = false) {
    const read = fields.map((one) => ({ name: one.feature.name, ...one.read() }));
    const most = limits.map((one) => ({ resource: one.resource, ...one.read() }));
    const wrong = read.find((one) => one.problem) ?? most.find((one) => one.problem);
    if (wrong) return wrong.focus();
    const known = Object.fromEntries(read.filter((one) => !one.empty).map((one) => [one.name, one.value]));
    const body = { label: label.value.trim(), known, budget: budgetOf(most.filter((one) => !one.empty)) };
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
    const found = fields.find((one) => one.feature.name === name) ?? (name.startsWith("budget") ? limits.find((one) => name.endsWith(`.${one.resource}`)) ?? budget : null);
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
        limits[0].shown),
      limits.length > 1 ? h("div", { class: "pair limits" }, limits.slice(1).map((one) => one.shown)) : null,
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

/** The field of the limit of a resource; `own` is that of the selector. */
function limit(resource, own, selector) {
  const name = resource === "money" ? "budget" : `budget-${resource}`;
  const label = resource === "money" && selector.resources.length === 1 ? t("budget") : t("budget of", { resource: resourceName(resource) });
  const made = field({ name, kind: "number", unit: unitOf(resource), label }, drafts, { legend: label });
  drafts[name] ??= own === undefined ? "" : number(own);
  made.node.querySelector("input").value = drafts[name];
  const total = resource === "money" ? selector.everything : selector.features.reduce((sum, one) => sum + (one.amounts?.[resource] ?? 0), 0);
  const hint = resource === "money" ? "budget hint" : resource === "time" ? "budget hint time" : "budget hint other";
  return { ...made, resource, shown: h("div", {}, made.node, h("span", { class: "hint" }, t(hint, { total: amount(resource, total) }))) };
}

/** The budget of a message: a number where only money is limited, else the limits by resource; null = none was given. */
function budgetOf(given) {
  if (!given.length) return null;
  if (given.length === 1 && given[0].resource === "money") return given[0].value;
  return Object.fromEntries(given.map((one) => [one.resource, one.value]));
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
