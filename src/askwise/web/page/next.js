// What to do next: the suggested test with its price and expected gain, the others to choose from, or the advice to stop.

import { bar, h } from "./dom.js";
import { field } from "./fields.js";
import { warning } from "./warning.js";
import { money, percent, t } from "./words.js";

const LARGE = 0.3, MODERATE = 0.1, SMALL = 0.02; // shares of the uncertainty that is left

/** The expected gain of a test in plain words; `entry` is one of the ranking. */
function gainInWords(entry, report) {
  if (!entry || typeof entry.gain !== "number") return t("gain unknown");
  const whole = entry.gain * (entry.cost || 1); // gains are per price, and undivided where the price is 0
  if (report.expected_error_cost !== undefined) return t("gain saving", { amount: money(Math.max(0, whole)) });
  const share = settled(entry, report);
  const size = share >= LARGE ? "large" : share >= MODERATE ? "moderate" : share >= SMALL ? "small" : "tiny";
  return t(`gain ${size}`, { share: percent(share) });
}

/** The share of the uncertainty that a test is expected to remove. */
function settled(entry, report) {
  const whole = (entry.gain ?? 0) * (entry.cost || 1);
  return Math.min(1, Math.max(0, whole / (report.uncertainty.total || Infinity)));
}

/** The card in which a value is entered. */
export function nextCard({ one, report, feature, spec, labelOf, draft, choose, send, answer }) {
  const suggested = feature === report.suggestion;
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
      h("button", { type: "button", id: "unavailable", onclick: () => send({ type: "unavailable", feature }) }, t("unavailable")),
      suggested || !report.suggestion ? null
        : h("button", { type: "button", id: "suggested", class: "link", onclick: () => choose(null) },
          t("back to", { test: labelOf(report.suggestion) }))));
  const node = h("section", { class: "card next", "aria-labelledby": "next-title" },
    h("p", { class: "eyebrow" }, t(suggested ? "ask next" : "your choice")),
    h("div", { class: "name" }, h("h2", { id: "next-title" }, labelOf(feature)),
      h("span", { class: "price" }, entry ? money(entry.cost) : money(spec(feature).price))),
    h("p", { class: "gain" }, entry ? gainInWords(entry, report) : t("gain unknown")),
    suggested ? whyBox(one.why, labelOf, spec) : h("p", { class: "hint" },
      report.suggestion ? t("instead", { test: labelOf(report.suggestion) }) : t("instead of nothing")),
    form);
  return {
    node,
    focus: input.focus,
    complain: (text, column) => { input.complain(text, column); input.focus(); },
    warn(text) {
      const box = warning(text, () => submit(true), () => { notice.replaceChildren(); input.focus(); });
      notice.replaceChildren(box.node);
      box.focus();
    },
  };
}

/** Why this test: the likely answers and where each leads; in the words of the server where there are none. */
function whyBox(why, labelOf, spec) {
  if (!why?.text) return null;
  const lines = (text) => h("div", { lang: "en" }, text.split("\n").filter((line) => line.trim()).map((line) => h("p", {}, line)));
  return h("details", { id: "why", class: "why" }, h("summary", {}, t("why")),
    why.outcomes?.length ? [
      h("p", { lang: "en" }, why.reason),
      h("p", {}, why.change ? t("why change", { share: percent(why.change) }) : t("why no change", { decision: why.decision })),
      outcomes(why, labelOf, spec),
      why.hint ? h("p", { lang: "en" }, why.hint) : null,
    ] : lines(why.text));
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

/** The other tests, best first, each of which can be chosen instead. */
export function ranking({ report, selector, feature, labelOf, choose }) {
  const ranked = report.ranking.filter((entry) => entry.feature !== feature);
  const named = new Set([...report.ranking.map((entry) => entry.feature), ...report.unavailable, ...Object.keys(report.known)]);
  const rest = selector.features.filter((other) => !named.has(other.name) && other.name !== feature);
  if (!ranked.length && !rest.length) return null;
  const best = Math.max(...report.ranking.map((entry) => entry.gain ?? 0));
  const line = (name, price, gain, share, worth) => h("li", {},
    h("button", { type: "button", onclick: () => choose(name) },
      h("span", { class: "test" }, labelOf(name)),
      h("span", { class: "price" }, money(price)),
      worth === null ? null : [bar(worth, "thin"), h("span", { class: "hint" }, gain)]));
  const over = (price) => report.budget_left !== null && price > report.budget_left * (1 + 1e-9);
  return h("section", { class: "card", "aria-labelledby": "others-title" },
    h("h2", { id: "others-title" }, t(report.ranking.length ? "others" : "others anyway")),
    h("p", { class: "hint" }, t(report.ranking.length ? "others hint" : "others anyway hint")),
    h("ol", { class: "ranking" },
      ranked.map((entry) => line(entry.feature, entry.cost,
        report.expected_error_cost === undefined ? t("settles", { share: percent(settled(entry, report)) }) : gainInWords(entry, report),
        settled(entry, report), best > 0 ? Math.max(0, entry.gain ?? 0) / best : 0)),
      rest.map((other) => (over(other.price)
        ? h("li", { class: "over" }, h("span", { class: "test" }, labelOf(other.name)), h("span", { class: "price" }, money(other.price)),
          h("span", { class: "hint" }, t("over budget")))
        : line(other.name, other.price, "", 0, null)))));
}

/** The advice to stop with what the guarantee says, that nothing is left, or that the case is finished. */
export function adviceCard({ one, report, selector, send }) {
  const finished = one.state === "finished";
  if (!finished && one.advice === "ask") return null;
  const kind = finished ? "finished" : one.advice;
  const promise = report.guarantee ?? selector.guarantee?.text;
  return h("section", { class: `card advice ${kind === "stop" ? "good" : ""}`, "aria-labelledby": "advice" },
    h("h2", { id: "advice", tabindex: "-1" }, t(`advice ${kind}`)),
    h("p", {}, t(`advice text ${kind}`)),
    promise ? h("blockquote", { lang: "en" }, promise) : null,
    kind === "stop" && !promise ? h("p", { class: "hint" }, t("no guarantee")) : null,
    finished ? null : h("p", { class: "actions" },
      h("button", { type: "button", class: "primary", onclick: () => send({ type: "finish" }) }, t("finish"))));
}
