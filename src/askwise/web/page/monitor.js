// The check of the promise: what was promised, what the checked cases tell, and what to do.

import { getMonitor } from "./api.js";
import { bar, h, show, svg } from "./dom.js";
import { money, number, percent, share, t } from "./words.js";

const KINDS = { "nothing known": "", kept: "good", strange: "warn", broken: "bad" };
const WIDTH = 220, HEIGHT = 22;

/** Show what is known of the promise. */
export async function monitorView(fail) {
  let report;
  try {
    report = await getMonitor();
  } catch (error) {
    if (error.status !== 404) return fail(error);
    return show(h("div", { class: "view" }, head(), h("p", { class: "card" }, t("monitor nothing"))));
  }
  document.title = `${t("monitor")} – askwise`;
  const [all] = report.rows;
  return show(h("div", { class: "view monitor" }, head(), verdict(report, all), figures(report, all), parts(report),
    h("div", { class: "pair" }, likeness(report), course(report)), promise(report)));
}

const head = () => h("div", { class: "title" },
  h("p", { class: "crumb" }, h("a", { href: "#/" }, `← ${t("cases")}`)),
  h("h1", { id: "title", tabindex: "-1" }, t("monitor")));

function verdict(report, all) {
  const alarmed = report.rows.filter((row) => row.alarm);
  return h("section", { class: `card verdict-of-promise ${KINDS[report.state]}`, id: "verdict", "aria-labelledby": "verdict-title" },
    h("h2", { id: "verdict-title" }, t(`monitor ${report.state}`)),
    h("p", {}, t(`monitor do ${report.state}`)),
    alarmed.length ? h("ul", { class: "alarms" }, alarmed.map((row) => h("li", {}, t("monitor alarm", {
      who: named(row, report.subgroup), lost: row.lost, cases: row.cases, promised: share(1 - row.promised), at: row.alarmed_at })))) : null,
    report.state === "broken" ? h("p", {}, t("monitor how"), " ", h("code", {}, "askwise recalibrate")) : null,
    all.cases ? null : h("p", { class: "hint" }, t("monitor share", { share: share(report.share) })));
}

function figures(report, all) {
  const figure = (name, value, hint) => h("div", { class: "figure" }, h("dt", {}, name), h("dd", {}, h("strong", {}, value), h("span", { class: "hint" }, hint)));
  return h("dl", { class: "figures card" },
    figure(t("monitor promised"), share(report.promised), t("monitor promised hint")),
    figure(t("monitor observed"), all.cases ? share(all.kept) : "–",
      all.cases ? t("monitor between", { low: share(all.low), high: share(all.high), sure: percent(1 - report.alpha) }) : t("monitor none")),
    figure(t("monitor cases"), number(all.cases), t("monitor lost", { lost: all.lost })),
    h("div", { class: "figure" }, h("dt", {}, t("monitor evidence")), h("dd", {}, h("strong", {}, brief(all.highest)),
      evidence(all), h("span", { class: "hint" }, t("monitor needed", { needed: brief(all.needed) })))));
}

/** How far the evidence is on its way to an alarm, by its logarithm: it multiplies with each case. */
function evidence(row) {
  const way = row.alarm ? 1 : Math.log(Math.max(1, row.highest ?? 1)) / Math.log(row.needed);
  return bar(way, row.alarm ? "thick alarm" : "thick");
}

const brief = (value) => (value === null ? "–" : value >= 1000 ? `> ${number(1000)}` : number(Number(value.toPrecision(2))));

function named(row, column) {
  if (row.of === "all") return t("monitor all");
  return row.of === "class" ? String(row.name) : `${column}: ${row.name}`;
}

/** All cases, each class and each subgroup: the interval that holds at all times, beside what is promised. */
function parts(report) {
  const low = Math.min(...report.rows.filter((row) => row.cases).map((row) => row.low), report.promised);
  const from = Math.max(0, Math.floor(10 * low - 0.5) / 10);
  const at = (value) => ((Math.max(value, from) - from) / (1 - from || 1)) * (WIDTH - 8) + 4;
  const picture = (row) => svg("svg", { class: `range ${row.alarm ? "alarm" : ""}`, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" },
    svg("line", { class: "grid", x1: 4, x2: WIDTH - 4, y1: HEIGHT / 2, y2: HEIGHT / 2 }),
    row.cases ? svg("line", { class: "between", x1: at(row.low), x2: at(row.high), y1: HEIGHT / 2, y2: HEIGHT / 2 }) : null,
    svg("line", { class: row.promised === null ? "grid" : "goal", x1: at(report.promised), x2: at(report.promised), y1: 2, y2: HEIGHT - 2 }),
    row.cases ? svg("circle", { class: "dot", cx: at(row.kept), cy: HEIGHT / 2, r: 4.5 }) : null);
  const line = (row) => h("tr", { class: row.alarm ? "alarmed" : "" },
    h("th", { scope: "row" }, h("span", { class: "who" }, row.of === "all" ? null : h("span", { class: "hint" }, t(`monitor of ${row.of}`)), named(row, report.subgroup)),
      row.alarm ? h("span", { class: "tag alarm" }, t("monitor tag")) : row.promised === null ? h("span", { class: "hint" }, t("monitor unpromised")) : null),
    h("td", { class: "number", "data-name": t("monitor cases") }, number(row.cases)),
    h("td", { class: "number", "data-name": t("monitor changed") }, number(row.lost)),
    h("td", { class: "number whole", "data-name": t("monitor observed") }, row.cases ? share(row.kept) : "–"),
    h("td", { class: "picture" }, picture(row)),
    h("td", { class: "number whole", "data-name": t("monitor interval") }, row.cases ? `${share(row.low)} – ${share(row.high)}` : "–"));
  return h("section", { class: "card parts", "aria-labelledby": "parts-title" },
    h("h2", { id: "parts-title" }, t("monitor parts")),
    h("p", { class: "hint" }, t("monitor parts hint", { alpha: percent(report.alpha), sure: percent(1 - report.alpha) })),
    h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("monitor who")),
        ["cases", "changed", "observed"].map((key) => h("th", { scope: "col", class: "number" }, t(`monitor ${key}`))),
        h("th", { scope: "col" }, h("span", { class: "ends" }, h("span", {}, share(from)), h("span", {}, share(1)))),
        h("th", { scope: "col", class: "number" }, t("monitor interval")))),
      h("tbody", {}, report.rows.map(line))));
}

function likeness({ novelty }) {
  const said = !novelty?.cases ? t("monitor novelty none") : t(novelty.alarm ? "monitor novelty alarm" : "monitor novelty kept");
  return h("section", { class: "card likeness", "aria-labelledby": "likeness-title" },
    h("h2", { id: "likeness-title" }, t("monitor novelty")), h("p", { class: novelty?.alarm ? "notice warn" : "" }, said),
    novelty?.cases ? [evidence(novelty), h("p", { class: "hint" }, t("monitor novelty hint", { evidence: brief(novelty.highest), needed: brief(novelty.needed) }))] : null);
}

function course(report) {
  const rows = [
    [t("monitor share name"), share(report.share)],
    [t("monitor stop price"), report.stop_price === null ? "–" : [money(report.stop_price), h("span", { class: "hint" }, t("monitor stop price of", { promised: money(report.promised_price) }))]],
    [t("monitor check price"), report.check_price === null ? "–" : money(report.check_price)],
    [t("monitor unused"), number(report.unused.reduce((sum, one) => sum + one.cases, 0))],
  ];
  return h("section", { class: "card", "aria-labelledby": "course-title" },
    h("h2", { id: "course-title" }, t("monitor course")),
    h("dl", { class: "facts" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    report.unused.length ? h("details", {}, h("summary", {}, t("monitor why unused")),
      h("ul", { lang: "en" }, report.unused.map((one) => h("li", {}, `${one.cases}: ${one.why}`)))) : null);
}

const promise = (report) => h("section", { class: "card" },
  h("details", {}, h("summary", {}, t("guarantee")), h("p", { lang: "en" }, report.guarantee)),
  h("p", { class: "hint" }, t("monitor model", { model: report.model })));
