// Elements without markup: every text becomes a text node, so no value is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element; `on...` are listeners, null and false attributes are left out, strings become text. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** A bar that fills `share` of its width; the CSS draws it. */
export function bar(share, kind = "") {
  const inner = h("span", { class: "fill" });
  inner.style.inlineSize = `${100 * Math.min(1, Math.max(0, share || 0))}%`;
  return h("span", { class: `bar ${kind}`, "aria-hidden": "true" }, inner);
}

export const byId = (id) => document.getElementById(id);

/** Replace the content of the page. */
export function show(...nodes) {
  byId("main").replaceChildren(...nodes.flat().filter(Boolean));
}

/** Tell a screen reader what happened. */
export function announce(text) {
  const status = byId("status");
  status.textContent = "";
  requestAnimationFrame(() => { status.textContent = text; });
}

/** A modal dialog; resolves to the value of the button pressed, "" for Escape. */
export function ask({ title, body, buttons }) {
  const back = document.activeElement;
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" },
      h("form", { method: "dialog" },
        h("h2", { id: "dialog-title" }, title), body,
        h("p", { class: "actions" }, buttons.map(([value, text, kind]) =>
          h("button", { value, class: kind ?? "", autofocus: kind !== "danger" && kind !== "primary" }, text)))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (back?.isConnected) back.focus();
      resolve(dialog.returnValue);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
