// A value outside of what the model has seen: a warning that must be confirmed before it is stored.

import { h } from "./dom.js";
import { t } from "./words.js";

/** The warning, with `texts` or else with what the server said; its first button goes back to the value, so that a second Enter never confirms by accident. */
export function warning(texts, said, confirm, change) {
  const back = h("button", { type: "button", onclick: change }, t("change value"));
  const node = h("div", { class: "notice warn", role: "alert" },
    h("p", {}, h("strong", {}, t("unusual value"))),
    texts.length ? texts.map((text) => h("p", {}, text)) : h("p", { lang: "en" }, said),
    h("p", { class: "actions" }, back,
      h("button", { type: "button", class: "warn", onclick: confirm }, t("confirm value"))));
  return { node, focus: () => back.focus() };
}
