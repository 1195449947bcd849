// What is known so far: the prediction and its uncertainty as they moved, the money, and the steps as a table.

import { course, drawn, history } from "./charts.js";
import { bar, h } from "./dom.js";
import { amount, besides, money, number, percent, resourceName, shown, t } from "./words.js";

/** The prediction, the classes, and how both moved. */
export function predictionCard(report, order, coverage, labelOf) {
  const classes = drawn(report.probabilities, order.map(String));
  const before = report.trace.at(-2)?.probabilities;
  const names = report.trace.map((step, k) => (k ? String(k) : t("start")));
  return h("section", { class: "card prediction", "aria-labelledby": "prediction-title" },
    h("h2", { id: "prediction-title", class: "eyebrow" }, t("prediction so far")),
    h("p", { class: "verdict" }, h("span", {}, String(report.prediction)),
      h("strong", { class: unlike(report) ? "doubt" : "" }, unlike(report) ? t("unreliable") : percent(report.probabilities[String(report.prediction)]))),
    h("ul", { class: "classes" }, classes.map(({ label, share, color }) => h("li", {
      class: `${color} ${label === String(report.prediction) ? "predicted" : ""}` },
      h("span", { class: "label" }, label), bar(share), h("span", { class: "share" }, unlike(report) ? "" : percent(share)),
      h("span", { class: "change" }, before && !unlike(report) ? change(share - (before[label] ?? 0)) : "")))),
    classes.length < order.length ? h("p", { class: "hint" }, t("other classes", { count: order.length - classes.length })) : null,
    report.trace.length > 1 ? history(report.trace, classes, names) : null,
    warnings(report, labelOf),
    h("dl", {}, courses(report, order.length)),
    report.prediction_set ? h("p", { class: "hint" }, t("set", { coverage: percent(coverage), classes: report.prediction_set.map(String).join(", ") })) : null,
    report.guarantee ? h("details", {}, h("summary", {}, t(report.guaranteed === false ? "not guaranteed" : "guarantee")), h("p", { lang: "en" }, report.guarantee)) : null);
}

function change(difference) {
  const points = Math.round(100 * difference);
  if (!points) return t("same");
  return t(points > 0 ? "up" : "down", { points: number(Math.abs(points)) });
}

function courses(report, classes) {
  const most = Math.log(classes);
  const of = (pick) => report.trace.map(pick);
  const rows = [
    course(t("final"), t("final hint"), of((step) => step.decision_is_final), 1, unlike(report) ? "–" : percent(report.decision_is_final)),
    course(t("total"), t("total hint"), of((step) => step.uncertainty.total), most, level(report.uncertainty.total / most, 0.3, 0.75)),
  ];
  const { epistemic } = report.uncertainty;
  if (epistemic !== null && epistemic !== undefined) {
    rows.push(course(t("epistemic"), t("epistemic hint"), of((step) => step.uncertainty.epistemic),
      Math.max(most / 2, ...of((step) => Number(step.uncertainty.epistemic) || 0)), level(epistemic / most, 0.15, 0.5)));
  }
  return rows;
}

/** An uncertainty in words, by its share of the largest that a prediction can have; "infinite" has none. */
function level(share, moderate, high) {
  if (Number.isNaN(share)) return t("level extreme");
  return t(`level ${share < moderate ? "low" : share < high ? "moderate" : "high"}`);
}

/** Whether the model has seen no such case: then its probabilities are not to be relied on, and none is shown as a number. */
export const unlike = (report) => Boolean(report.outside?.length) || report.novelty === "infinite" || report.novelty > 0;

function warnings(report, labelOf) {
  const cells = (report.outside ?? []).map((cell) => t("outside", { column: labelOf(cell.column), value: shown(cell.value) }));
  if (report.novelty === "infinite" || report.novelty > 0) cells.push(t("novel"));
  return cells.length ? h("div", { class: "notice warn" }, cells.map((text) => h("p", {}, text))) : null;
}

/** Why questions go on after the advice to stop: the case checks the promise, and what it has told. */
export function checkNotice({ report, state }) {
  const { check } = report;
  if (!check) return null;
  const { stopped, full, unused } = check;
  if (check.changed !== null) {
    return h("p", { class: "notice info", id: "check" }, h("strong", {}, t("check title")), " ",
      t(check.changed ? "check changed" : "check kept", { stopped, full }));
  }
  const going = state === "open" && !unused;
  const left = check.to_ask.length ? t("check left", { count: check.to_ask.length }) : t("check waits");
  return h("div", { class: "notice info", id: "check" },
    h("p", {}, h("strong", {}, t("check title")), " ", going ? t("check going", { stopped, left }) : t("check not", { stopped })),
    unused ? h("p", { class: "hint", lang: "en" }, unused) : null,
    going ? h("p", { class: "hint" }, t("check skip")) : null);
}

/** Spent and left, of each resource. */
export function budgetCard(report) {
  const resources = Object.entries(report.resources);
  return h("section", { class: "card budget", "aria-labelledby": "budget-title" },
    h("h2", { id: "budget-title", class: "eyebrow" }, t("budget")),
    resources.map(([name, { spent, left }]) => purse(name, spent, left, resources.length > 1)),
    report.check && report.spent > report.check.spent ? h("p", { class: "hint" }, t("check spent", { amount: money(report.spent - report.check.spent) })) : null);
}

function purse(name, spent, left, named) {
  const whole = left === null ? null : spent + left;
  const label = named ? t("budget of", { resource: resourceName(name) }) : t("budget");
  return h("div", { class: "purse", "data-resource": name },
    h("p", { class: "money" }, named ? h("span", { class: "resource" }, resourceName(name)) : null,
      h("span", {}, h("strong", {}, amount(name, spent)), " ",
        whole === null ? t("spent no limit") : t("spent of", { budget: amount(name, whole) }))),
    whole === null ? null : h("div", {
      role: "meter", "aria-label": label, "aria-valuemin": "0", "aria-valuemax": whole, "aria-valuenow": spent,
      "aria-valuetext": t("left", { amount: amount(name, left) }),
    }, bar(whole ? spent / whole : 1, "thick")),
    whole === null ? null : h("p", { class: "hint" }, t("left", { amount: amount(name, left) })));
}

/** A price with what else is taken, such as "7.27 · 24 h". */
const priceOf = (cost, amounts) => [money(cost), besides(amounts)].filter(Boolean).join(" · ");

/** Everything that was entered, with the prediction after each step. */
export function stepsCard(one, spec, undo) {
  const { report } = one;
  const answered = new Set(report.trace.map((step) => step.feature));
  const given = Object.entries(report.known).filter(([name]) => !answered.has(name));
  const name = (feature) => spec(feature)?.label || feature;
  const value = (feature, cell) => shown(cell, spec(feature)?.unit);
  const after = (step) => `${step.prediction} ${unlike(step) ? `(${t("unreliable")})` : percent(step.probabilities[String(step.prediction)])}`;
  const row = (kind, cells) => h("tr", { class: kind }, cells.map(([title, text, css], k) =>
    (k === 1 ? h("th", { scope: "row", "data-name": title }, text) : h("td", { "data-name": title, class: css ?? "" }, text))));
  const start = after(report.trace[0]);
  const rows = [
    ...given.map(([feature, cell], k) => row("given", [
      [t("step"), "0"], [t("test"), name(feature)], [t("value"), value(feature, cell)], [t("price"), t("known before"), "number"],
      [t("after"), k === given.length - 1 ? start : ""]])),
    ...(given.length ? [] : [row("start", [
      [t("step"), "0"], [t("test"), t("start")], [t("value"), t("nothing known")], [t("price"), "", "number"], [t("after"), start]])]),
    ...report.trace.slice(1).map((step, k) => row(step.event, [
      [t("step"), String(k + 1)], [t("test"), name(step.feature)],
      [t("value"), step.event === "unavailable" ? t("was unavailable") : step.event === "order" ? t("was ordered") : value(step.feature, step.value)],
      [t("price"), priceOf(step.cost, step.amounts), "number"], [t("after"), after(step)]])),
  ];
  return h("section", { class: "card history-of-steps", "aria-labelledby": "steps-title" },
    h("div", { class: "head" }, h("h2", { id: "steps-title" }, t("steps")), undo),
    h("table", { class: "steps" },
      h("thead", {}, h("tr", {}, ["step", "test", "value", "price", "after"].map((key) =>
        h("th", { scope: "col", class: key === "price" ? "number" : "" }, t(key))))),
      h("tbody", {}, rows)));
}
