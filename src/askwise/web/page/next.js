// What to do next: the suggested test with its price and expected gain, the others to choose from, or the advice to stop.

import { getWhy } from "./api.js";
import { bar, h } from "./dom.js";
import { field, unusual } from "./fields.js";
import { warning } from "./warning.js";
import { besides, clock, money, percent, t } from "./words.js";

const LARGE = 0.3, MODERATE = 0.1, SMALL = 0.02, LEAST = 0.005; // shares of the uncertainty that is left
const MOST_SHOWN = 8; // tests in the list of others, at first

/** The expected gain of a test in plain words; `entry` is one of the ranking. */
function gainInWords(entry, report) {
  if (!entry || typeof entry.gain !== "number") return t("gain unknown");
  const whole = entry.gain * (entry.weighed || 1); // gains are per price, and undivided where the price is 0
  if (report.expected_error_cost !== undefined) return t("gain saving", { amount: money(Math.max(0, whole)) });
  const share = settled(entry, report);
  const size = share >= LARGE ? "large" : share >= MODERATE ? "moderate" : share >= SMALL ? "small" : "tiny";
  return t(`gain ${size}`, { share: percent(share) });
}

/** The share of the uncertainty that a test is expected to remove. */
function settled(entry, report) {
  const whole = (entry.gain ?? 0) * (entry.weighed || 1);
  return Math.min(1, Math.max(0, whole / (report.uncertainty.total || Infinity)));
}

function settledInWords(entry, report) {
  const share = settled(entry, report);
  return share < LEAST ? t("settles nothing") : t("settles", { share: percent(share) });
}

/** The card in which a value is entered. */
export function nextCard({ one, report, feature, spec, labelOf, draft, choose, send, answer }) {
  const suggested = feature === report.suggestion;
  const out = report.pending.find((other) => other.feature === feature); // its result is what is entered here
  const entry = report.ranking.find((other) => other.feature === feature);
  const input = field(spec(feature), draft, { legend: spec(feature).kind === "group" ? null : t("value of", { test: labelOf(feature) }) });
  const notice = h("div");
  const submit = (confirmed) => {
    const read = input.read();
    if (read.problem) return read.focus();
    if (read.empty) { input.complain(t("empty")); return input.focus(); }
    return answer(read.value, feature, confirmed);
  };
  const form = h("form", { onsubmit: (event) => { event.preventDefault(); submit(false); } },
    input.node, notice,
    h("p", { class: "actions" },
      h("button", { class: "primary" }, t("save")),
      out ? null : h("button", { type: "button", id: "order", onclick: () => send({ type: "order", feature }) }, t("order")),
      h("button", { type: "button", id: "unavailable", onclick: () => send({ type: "unavailable", feature }) }, t("unavailable")),
      suggested || !report.suggestion ? null
        : h("button", { type: "button", id: "suggested", class: "link", onclick: () => choose(null) },
          t("back to", { test: labelOf(report.suggestion) }))));
  const node = h("section", { class: "card next", "aria-labelledby": "next-title" },
    h("p", { class: "eyebrow" }, t(out ? "result of" : suggested ? "ask next" : "your choice")),
    h("div", { class: "name" }, h("h2", { id: "next-title" }, labelOf(feature)),
      h("span", { class: "price" }, out ? t("paid") : taken(one, feature, entry?.cost ?? one.prices[feature] ?? spec(feature).price))),
    h("p", { class: "gain" }, out ? whenBack(out) : entry ? gainInWords(entry, report) : t("gain unknown")),
    suggested ? whyBox(one, labelOf, spec) : out ? null : h("p", { class: "hint" },
      report.suggestion ? t("instead", { test: labelOf(report.suggestion) }) : t("instead of nothing")),
    suggested && one.why?.hint ? h("p", { class: "notice good" }, t("could stop")) : null,
    form);
  return {
    node,
    focus: input.focus,
    complain: (text, column) => { input.complain(text, column); input.focus(); },
    warn(text, value) {
      const box = warning(unusual(spec(feature), value), text, () => submit(true), () => { notice.replaceChildren(); input.focus(); });
      notice.replaceChildren(box.node);
      box.focus();
    },
  };
}

/** What a test takes: its price, and what it takes of other resources. */
const taken = (one, feature, price) => {
  const more = besides(one.amounts[feature]);
  return [money(price), more ? h("span", { class: "besides" }, more) : null];
};

const whenBack = (out) => (out.expected_at ? t("expected", { ordered: clock(out.ordered_at), expected: clock(out.expected_at) })
  : t("ordered at", { ordered: clock(out.ordered_at) }));

/** The results that are out, each of which can be entered when it is back. */
export function pendingCard({ report, labelOf, choose }) {
  if (!report.pending.length) return null;
  return h("section", { class: "card pending", "aria-labelledby": "pending-title" },
    h("h2", { id: "pending-title" }, t("pending")), h("p", { class: "hint" }, t("pending hint")),
    h("ol", { class: "ranking" }, report.pending.map((out) => h("li", { class: "plain" },
      h("button", { type: "button", onclick: () => choose(out.feature) },
        h("span", { class: "test" }, labelOf(out.feature)), h("span", { class: "hint" }, whenBack(out)))))));
}

/** Why this test: the likely answers and where each leads, asked for when it is opened; until then, or without an answer, what is known already. */
function whyBox(one, labelOf, spec) {
  if (!one.why?.text) return null;
  const inside = h("div", {}, h("p", { lang: "en" }, one.why.reason), h("p", { class: "hint" }, t("why loading")));
  const box = h("details", { id: "why", class: "why" }, h("summary", {}, t("why")), inside);
  box.addEventListener("toggle", async () => {
    const why = await getWhy(one.id).catch(() => one.why);
    inside.replaceChildren(...reasons(why.version === one.version ? why : one.why, labelOf, spec));
  }, { once: true });
  return box;
}

function reasons(why, labelOf, spec) {
  if (!why.outcomes?.length) return why.text.split("\n").filter((line) => line.trim()).map((line) => h("p", { lang: "en" }, line));
  return [
    h("p", { lang: "en" }, why.reason),
    h("p", {}, why.change ? t("why change", { share: percent(why.change) }) : t("why no change", { decision: why.decision })),
    outcomes(why, labelOf, spec),
    ...(why.hint ? [h("p", { lang: "en" }, why.hint)] : []),
  ];
}

function outcomes(why, labelOf, spec) {
  const answer = ({ column, answer: text, values }) => {
    const unit = values === null ? spec(why.feature)?.unit : null;
    const said = unit ? `${text} ${unit}` : text;
    return column && column !== why.feature ? `${labelOf(column)}: ${said}` : said;
  };
  return h("table", {},
    h("thead", {}, h("tr", {}, ["why answer", "why chance", "why leads"].map((key) => h("th", { scope: "col" }, t(key))))),
    h("tbody", {}, why.outcomes.map((one) => h("tr", {},
      h("th", { scope: "row" }, answer(one)), h("td", {}, percent(one.chance)),
      h("td", {}, t(one.changes_decision ? "why changes" : "why stays", { decision: one.decision, share: percent(one.probability) }))))));
}

/** The other tests, best value for the price first, each of which can be chosen instead. */
export function ranking({ one, report, feature, labelOf, choose }) {
  const ranked = report.ranking.filter((entry) => entry.feature !== feature);
  const names = new Set([feature, ...report.ranking.map((entry) => entry.feature)]);
  const rest = Object.entries(one.prices).filter(([name]) => !names.has(name));
  if (!ranked.length && !rest.length) return null;
  const most = Math.max(...report.ranking.map((entry) => settled(entry, report)), 0.01);
  const saving = report.expected_error_cost !== undefined;
  const line = (name, price, gain) => h("li", { class: gain ? "" : "plain" }, h("button", { type: "button", onclick: () => choose(name) },
    h("span", { class: "test" }, labelOf(name)), h("span", { class: "price" }, taken(one, name, price)), gain));
  const over = (name) => Object.entries(report.resources).some(([resource, { left }]) =>
    left !== null && !(report.check && resource === "money") && (one.amounts[name]?.[resource] ?? 0) > left * (1 + 1e-9));
  const items = [
    ...ranked.map((entry) => line(entry.feature, entry.cost, report.check ? null : saving ? h("span", { class: "hint wide" }, gainInWords(entry, report)) : [
      bar(settled(entry, report) / most, "thin"),
      h("span", { class: "hint" }, settledInWords(entry, report))])),
    ...rest.map(([name, price]) => (over(name)
      ? h("li", { class: "over" }, h("span", { class: "test" }, labelOf(name)), h("span", { class: "price" }, taken(one, name, price)),
        h("span", { class: "hint wide" }, t("over budget")))
      : line(name, price, null))),
  ];
  const key = report.ranking.length ? "others" : "others anyway";
  return h("section", { class: "card others", "aria-labelledby": "others-title" },
    h("h2", { id: "others-title" }, t(key)), h("p", { class: "hint" }, t(report.check && report.ranking.length ? "others check hint" : `${key} hint`)), folded(items));
}

/** A long list is cut, with a button that shows the rest. */
function folded(items) {
  const list = h("ol", { class: "ranking" }, items);
  if (items.length <= MOST_SHOWN + 2) return list;
  const rest = items.slice(MOST_SHOWN);
  rest.forEach((item) => { item.hidden = true; });
  const more = h("button", {
    type: "button", class: "small",
    onclick: () => { rest.forEach((item) => { item.hidden = false; }); more.remove(); (rest[0].querySelector("button") ?? list).focus(); },
  }, t("show all", { count: items.length }));
  return [list, h("p", {}, more)];
}

/** The advice to stop with what the guarantee says, to hand the case to a person and why, that nothing is left, or that the case is finished. */
export function adviceCard({ one, report, send }) {
  const finished = one.state === "finished";
  if (!finished && one.advice === "ask") return null;
  const kind = finished ? "finished" : one.advice;
  return h("section", { class: `card advice ${kind === "stop" && report.guaranteed !== false ? "good" : ""}`, "aria-labelledby": "advice" },
    h("h2", { id: "advice", tabindex: "-1" }, t(`advice ${kind}`)),
    h("p", {}, t(`advice text ${kind}`)),
    report.handover?.advice === "hand over" ? h("p", { id: "handover", lang: "en", class: "notice warn" }, `${finished ? t("advice hand over") : t("because")}: ${report.handover.reason}`) : null,
    report.guarantee ? h("blockquote", { lang: "en", class: report.guaranteed === false ? "void" : "" }, report.guarantee) : null,
    kind === "stop" && !report.guarantee ? h("p", { class: "hint" }, t("no guarantee")) : null,
    finished ? null : h("p", { class: "actions" },
      h("button", { type: "button", id: "finish", class: "primary", onclick: () => send({ type: "finish" }) }, t("finish"))));
}
