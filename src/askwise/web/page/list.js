// The list of cases, with search.

import { listCases } from "./api.js";
import { announce, bar, byId, h, show } from "./dom.js";
import { date, money, percent, t } from "./words.js";

const PAGE = 50;
const PAUSE = 200; // milliseconds without typing before a search starts
const query = { search: "", state: "open" };

export async function caseList(selector, fail) {
  const rows = h("tbody");
  const table = h("table", { class: "cases", "aria-labelledby": "title" }, head(), rows);
  const more = h("button", { type: "button", hidden: true, onclick: () => load(rows.children.length) }, t("more cases"));
  const empty = h("p", { class: "empty", hidden: true });
  let asked = 0;

  async function load(offset) {
    const turn = ++asked;
    let found;
    try {
      found = await listCases({ ...query, offset, limit: PAGE });
    } catch (error) {
      fail(error);
      return;
    }
    if (turn !== asked) return; // a newer search is under way
    if (!offset) rows.replaceChildren();
    rows.append(...found.cases.map(row));
    table.hidden = !found.total;
    empty.hidden = Boolean(found.total);
    empty.textContent = t(query.search ? "no match" : "no cases");
    more.hidden = rows.children.length >= found.total;
    announce(t("cases found", { count: found.total }));
  }

  show(h("div", { class: "view list" },
    h("div", { class: "head" }, h("h1", { id: "title", tabindex: "-1" }, t("cases")),
      h("p", { class: "actions" },
        selector.check ? h("a", { class: "button", href: "#/monitor", id: "monitor" }, t("monitor")) : null,
        h("a", { class: "button primary", href: "#/new" }, t("new case")))),
    filters(() => load(0)),
    h("div", { class: "card flush" }, table, empty), more));
  await load(0);
}

export const focusSearch = () => byId("search")?.focus();

function filters(reload) {
  let timer;
  const search = h("input", { id: "search", type: "search", autocomplete: "off", placeholder: t("search hint") });
  search.value = query.search;
  search.addEventListener("input", () => {
    query.search = search.value.trim();
    clearTimeout(timer);
    timer = setTimeout(reload, PAUSE);
  });
  const states = ["open", "finished", "all"].map((state) => {
    const radio = h("input", { type: "radio", name: "state", value: state, onchange: () => { query.state = state; reload(); } });
    radio.checked = query.state === state;
    return h("label", { class: "choice" }, radio, h("span", {}, t(`state ${state}`)));
  });
  return h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    h("label", { for: "search", class: "hidden" }, t("search")), search,
    h("fieldset", {}, h("legend", { class: "hidden" }, t("state")), h("div", { class: "choices" }, states)));
}

const head = () => h("thead", {}, h("tr", {},
  ["case", "prediction", "spent", "updated", "state"].map((name) => h("th", { scope: "col", class: name === "spent" ? "number" : "" }, t(name)))));

function row(one) {
  return h("tr", {},
    h("th", { scope: "row" }, h("a", { href: `#/case/${encodeURIComponent(one.id)}` }, one.label || t("no label"))),
    h("td", { "data-name": t("prediction") }, one.prediction === null || one.prediction === undefined ? "–" : [
      h("span", { class: "share" }, String(one.prediction), " ", h("strong", {}, percent(one.probability))), bar(one.probability)]),
    h("td", { class: "number", "data-name": t("spent") }, money(one.spent ?? 0)),
    h("td", { "data-name": t("updated") }, h("time", { datetime: one.updated }, date(one.updated))),
    h("td", { "data-name": t("state") }, h("span", { class: `tag ${one.state}` }, t(`state ${one.state}`))));
}
