// The language of the page: its words (words/<code>.json), and numbers, money and dates as it writes them.

import { byId } from "./dom.js";
import { recall, remember } from "./memory.js";

const languages = () => [...byId("language").options].map((option) => option.value);
let words = {};
let fallback = {};
let code = "en";
let currency = null;

/** Load the remembered language, or the browser's if the page has it, else English. */
export async function loadLanguage(chosen = recall("language")) {
  const wanted = [chosen, ...navigator.languages.map((name) => name.slice(0, 2)), "en"];
  code = wanted.find((name) => languages().includes(name));
  fallback = await file("en");
  words = code === "en" ? fallback : await file(code);
  document.documentElement.lang = code;
}

export async function chooseLanguage(chosen) {
  remember("language", chosen);
  await loadLanguage(chosen);
}

async function file(name) {
  const reply = await fetch(`words/${name}.json`);
  if (!reply.ok) throw new Error(`words/${name}.json: ${reply.status}`);
  return reply.json();
}

export const language = () => code;

export function setCurrency(name) {
  currency = name || null;
}

/** The words of a key, with {name} replaced; `count` picks the plural form `key.one`, `key.other`. */
export function t(key, values = {}) {
  const plural = "count" in values ? `${key}.${new Intl.PluralRules(code).select(values.count)}` : key;
  const text = words[plural] ?? words[key] ?? fallback[plural] ?? fallback[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

export const number = (value) =>
  new Intl.NumberFormat(code, { maximumSignificantDigits: 15, useGrouping: false }).format(value);

/** A share as a percentage; never rounded to a certainty that it is not. */
export function percent(share) {
  const whole = Math.round(100 * share);
  if (share < 1 && whole === 100) return t("over", { share: written(0.99) });
  if (share > 0 && whole === 0) return t("under", { share: written(0.01) });
  return written(share);
}

const written = (share) => new Intl.NumberFormat(code, { style: "percent", maximumFractionDigits: 0 }).format(share);

/** A share with a tenth of a percent, as shares that are measured are compared; never rounded to a certainty either. */
export function share(value) {
  const tenths = value > 0 && value < 1 ? Math.min(Math.max(value, 0.001), 0.999) : value;
  return new Intl.NumberFormat(code, { style: "percent", maximumFractionDigits: 1 }).format(tenths);
}

/** An amount in the currency of the prices; a plain number where they have none. */
export function money(amount) {
  const plain = { maximumFractionDigits: 2 };
  if (!currency) return new Intl.NumberFormat(code, plain).format(amount);
  try {
    return new Intl.NumberFormat(code, { style: "currency", currency }).format(amount);
  } catch {
    return `${new Intl.NumberFormat(code, plain).format(amount)} ${currency}`;
  }
}

export const moneySign = () => currency ?? "";

/** What a resource is called; one that the page has no word for is called as in the price list. */
export const resourceName = (name) => (name === "money" || name === "time" ? t(`resource ${name}`) : name[0].toUpperCase() + name.slice(1));

export const unitOf = (name) => (name === "money" ? moneySign() : name === "time" ? t("unit time") : "");

/** An amount of a resource: money in its currency, time in hours, and anything else as a number. */
export function amount(name, value) {
  if (name === "money") return money(value);
  const plain = new Intl.NumberFormat(code, { maximumFractionDigits: 2 }).format(value);
  return unitOf(name) ? `${plain} ${unitOf(name)}` : plain;
}

/** What a test takes besides money, where it takes something, such as "24 h · harm 1". */
export const besides = (amounts = {}) => Object.entries(amounts).filter(([name, value]) => name !== "money" && value > 0)
  .map(([name, value]) => (unitOf(name) ? amount(name, value) : `${name} ${amount(name, value)}`)).join(" · ");

export const date = (text) =>
  new Intl.DateTimeFormat(code, { dateStyle: "medium", timeStyle: "short" }).format(new Date(text));

/** A time of today, or with its date. */
export function clock(text) {
  const then = new Date(text);
  const today = then.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(code, today ? { timeStyle: "short" } : { dateStyle: "short", timeStyle: "short" }).format(then);
}

/** A value as people read it; the columns of a group one after the other. */
export function shown(value, unit = null) {
  if (value === null || value === undefined) return t("missing");
  if (typeof value === "object") {
    return Object.entries(value).filter(([, cell]) => cell !== null).map(([name, cell]) => `${name} ${shown(cell)}`).join(", ");
  }
  if (typeof value === "boolean") return t(value ? "yes" : "no");
  const text = typeof value === "number" ? number(value) : String(value);
  return unit ? `${text} ${unit}` : text;
}
