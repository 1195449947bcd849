// The field in which the value of a test is entered: a number with its unit and range, choices, text, or a group of them.

import { h } from "./dom.js";
import { number, shown, t } from "./words.js";

const MOST_BUTTONS = 6; // more choices than that become a list
let count = 0;

/**
 * The field of a feature.
 *
 * `draft` is what was typed before ({column: text}); `read` gives {value}, {empty: true} or {problem, node}.
 */
export function field(feature, draft = {}, { legend = null } = {}) {
  const columns = feature.kind === "group" ? feature.columns : [feature];
  const parts = columns.map((one) => part(one, draft, legend ?? one.label ?? one.name));
  const node = h("div", { class: "field" }, parts.map((one) => one.node));
  node.addEventListener("input", () => parts.forEach((one) => one.keep()));
  return {
    node,
    focus: () => parts[0].focus(),
    complain: (text, name) => (parts.find((one) => one.name === name) ?? parts[0]).complain(text),
    read() {
      parts.forEach((one) => one.complain(""));
      const cells = parts.map((one) => one.read());
      const wrong = cells.findIndex((cell) => cell.problem);
      if (wrong >= 0) {
        parts[wrong].complain(cells[wrong].problem);
        return { problem: cells[wrong].problem, focus: parts[wrong].focus };
      }
      const given = cells.map((cell, k) => [parts[k].name, cell.value]).filter(([, value]) => value !== undefined);
      if (!given.length) return { empty: true };
      return { value: feature.kind === "group" ? Object.fromEntries(given) : given[0][1] };
    },
  };
}

/** What is unusual about a value, in sentences: each number outside of its range. */
export function unusual(feature, value) {
  const cells = feature.kind === "group" ? value : { [feature.name]: value };
  return (feature.kind === "group" ? feature.columns : [feature]).flatMap((one) => {
    const cell = cells[one.name];
    if (typeof cell !== "number" || !((one.low ?? cell) > cell || (one.high ?? cell) < cell)) return [];
    return [t("outside range", { label: one.label || one.name, value: shown(cell, one.unit), range: rangeOf(one) })];
  });
}

function part(one, draft, label) {
  const id = `field-${++count}`;
  const hint = h("span", { class: "hint", id: `${id}-hint` }, hintOf(one));
  const problem = h("span", { class: "problem", id: `${id}-problem` });
  const described = `${id}-hint ${id}-problem`;
  const make = one.values?.length || one.kind === "boolean" ? choices : typed;
  const input = make(one, id, label, described, draft[one.name]);
  return {
    ...input,
    name: one.name,
    node: h("div", { class: "part" }, input.node, hint, problem),
    keep: () => { draft[one.name] = input.raw(); },
    complain(text) {
      problem.textContent = text;
      input.mark(Boolean(text));
    },
  };
}

/** The range in words: where the model has seen values, or what whoever wrote the price list expects. */
function rangeOf(one) {
  if (one.kind !== "number") return "";
  return between(one.seen === false ? "range expected" : "range", one.low, one.high, one.unit);
}

/** The range, and the reference interval where one is given, which is something else. */
const hintOf = (one) => [one.reference && between("reference", ...one.reference, one.unit), rangeOf(one)].filter(Boolean).join(" · ");

function between(key, from, to, unit) {
  const [low, high] = [from, to].map((end) => (end === null || end === undefined ? "…" : number(end)));
  return low === high ? "" : t(key, { low, high, unit: unit ?? "" }).trim();
}

function typed(one, id, label, described, raw = "") {
  const numeric = one.kind === "number";
  const input = h("input", {
    id, type: "text", name: one.name, inputmode: numeric ? "decimal" : "text", autocomplete: "off",
    "aria-describedby": described, class: numeric ? "number" : "",
  });
  input.value = raw;
  return {
    node: h("div", { class: "typed" }, h("label", { for: id }, label),
      h("span", { class: "with-unit" }, input, one.unit ? h("span", { class: "unit" }, one.unit) : null)),
    focus: () => input.focus(),
    raw: () => input.value,
    mark: (wrong) => (wrong ? input.setAttribute("aria-invalid", "true") : input.removeAttribute("aria-invalid")),
    read: () => parse(input.value, numeric),
  };
}

/** One decimal mark, point or comma; thousands are not separated. */
function parse(text, numeric) {
  const trimmed = text.trim();
  if (!trimmed) return {};
  if (!numeric) return { value: trimmed };
  const plain = trimmed.replace(",", ".").replace("−", "-");
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain)) return { problem: t("not a number", { text: trimmed }) };
  return { value: Number(plain) };
}

function choices(one, id, label, described, raw) {
  const values = one.values?.length ? one.values : [true, false];
  return values.length > MOST_BUTTONS ? list(values, id, label, described, raw) : buttons(values, id, label, described, raw);
}

function list(values, id, label, described, raw = "") {
  const select = h("select", { id, "aria-describedby": described },
    h("option", { value: "" }, t("choose")), values.map((value, k) => h("option", { value: k }, shown(value))));
  select.value = raw;
  return {
    node: h("div", { class: "typed" }, h("label", { for: id }, label), select),
    focus: () => select.focus(),
    raw: () => select.value,
    mark: (wrong) => (wrong ? select.setAttribute("aria-invalid", "true") : select.removeAttribute("aria-invalid")),
    read: () => (select.value === "" ? {} : { value: values[Number(select.value)] }),
  };
}

function buttons(values, id, label, described, raw = "") {
  const radios = values.map((value, k) => h("input", { type: "radio", name: id, id: `${id}-${k}`, value: k }));
  const chosen = () => radios.find((radio) => radio.checked)?.value ?? "";
  radios.forEach((radio) => {
    radio.checked = radio.value === raw;
    radio.addEventListener("keydown", (event) => { // a choice made by mistake can be taken back
      if (event.key === "Delete" || event.key === "Backspace") {
        radio.checked = false;
        radio.dispatchEvent(new Event("input", { bubbles: true }));
      }
    });
  });
  const node = h("fieldset", { "aria-describedby": described }, h("legend", {}, label),
    h("div", { class: "choices" }, values.map((value, k) =>
      h("label", { class: "choice", for: `${id}-${k}` }, radios[k], h("span", {}, shown(value))))));
  return {
    node,
    focus: () => (radios.find((radio) => radio.checked) ?? radios[0]).focus(),
    raw: chosen,
    mark: (wrong) => node.classList.toggle("wrong", wrong),
    read: () => (chosen() === "" ? {} : { value: values[Number(chosen())] }),
  };
}
