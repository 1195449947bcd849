// Small charts of how a case moved, step by step. The table of steps holds the same numbers for those who cannot see them.

import { h, svg } from "./dom.js";
import { percent, t } from "./words.js";

const MOST_LINES = 6;
const WIDTH = 340, HEIGHT = 150, LEFT = 34, RIGHT = 14, TOP = 8, BOTTOM = 20;

/** The classes that are drawn, in their own order or, if there are many, the most likely; each keeps its color. */
export function drawn(probabilities, order) {
  const all = order.map((label, k) => ({ label, share: probabilities[label] ?? 0, color: `c${k % MOST_LINES}` }));
  return all.length > MOST_LINES ? all.sort((a, b) => b.share - a.share).slice(0, MOST_LINES) : all;
}

/** Lines of the class probabilities over the steps of a trace. */
export function history(trace, classes, names) {
  const at = (k) => LEFT + (trace.length < 2 ? 0 : (k * (WIDTH - LEFT - RIGHT)) / (trace.length - 1));
  const height = (share) => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
  const lines = classes.map(({ label, color }) => {
    const points = trace.map((step, k) => [at(k), height(step.probabilities[label] ?? 0)]);
    return svg("g", { class: color },
      svg("polyline", { class: "line", points: points.map((point) => point.join(",")).join(" ") }),
      points.map(([x, y], k) => svg("circle", { class: "dot", cx: x, cy: y, r: k === points.length - 1 ? 4 : 2.5 },
        svg("title", {}, `${names[k]}: ${label} ${percent(trace[k].probabilities[label] ?? 0)}`))));
  });
  const grid = [0, 0.5, 1].map((share) => svg("g", {},
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: height(share), y2: height(share) }),
    svg("text", { class: "tick", x: LEFT - 6, y: height(share) + 3.5, "text-anchor": "end" }, percent(share))));
  const every = Math.ceil(trace.length / 10);
  const steps = trace.map((_, k) => (k % every ? null
    : svg("text", { class: "tick", x: at(k), y: HEIGHT - 4, "text-anchor": "middle" }, k === 0 ? t("start") : String(k))));
  const said = classes.map(({ label }) =>
    `${label}: ${percent(trace[0].probabilities[label] ?? 0)} → ${percent(trace.at(-1).probabilities[label] ?? 0)}`);
  return svg("svg", {
    class: "history", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${t("history")} ${said.join("; ")}`,
  }, grid, steps, lines);
}

/** One quantity over the steps: its name, its course and its current value. `values` may hold null. */
export function course(name, explained, values, ceiling, text) {
  const width = 96, height = 26;
  const at = (k) => 4 + (values.length < 2 ? width - 8 : (k * (width - 8)) / (values.length - 1));
  const up = (value) => height - 4 - (Math.min(value, ceiling) / (ceiling || 1)) * (height - 8);
  const points = values.flatMap((value, k) => (typeof value === "number" ? [[at(k), up(value)]] : []));
  const last = points.at(-1);
  return h("div", { class: "course" },
    h("dt", {}, name, h("span", { class: "hint" }, explained)),
    h("dd", {},
      values.length < 2 ? null : svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
        svg("line", { class: "grid", x1: 0, x2: width, y1: height - 3, y2: height - 3 }),
        svg("polyline", { class: "line", points: points.map((point) => point.join(",")).join(" ") }),
        last ? svg("circle", { class: "dot", cx: last[0], cy: last[1], r: 3 }) : null),
      h("span", { class: "value" }, text)));
}
