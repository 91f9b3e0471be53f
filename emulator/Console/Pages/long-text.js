// Texts from outside: cut if they are long, with control characters made visible.

import { button, count, h, replace } from "./dom.js";

// Controls, bidirectional marks and line separators could hide or reorder a text.
const controls =
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g;

/** A text with its invisible control characters escaped; line feeds and tabs stay. */
export const visible = (text) => String(text).replace(controls, (character) =>
  `\\u{${character.codePointAt(0).toString(16).toUpperCase()}}`);

/**
 * An element with a text; of a long one it shows the beginning and a button for the rest.
 *
 * The page would freeze over a table of texts of a megabyte each.
 */
export function longText(text, { max = 400, tag = "span", label = "text" } = {}) {
  const whole = String(text ?? "");
  if (whole.length <= max) return h(tag, visible(whole));
  const element = h(tag, `${visible(whole.slice(0, max))}… `);
  element.append(h("button.plain", {
    type: "button",
    "aria-label": `Show all of the ${label}, ${count(whole.length)} characters`,
    onclick: () => replace(element, visible(whole)),
  }, `show all (${count(whole.length)})`));
  return element;
}

/** A value as indented JSON, cut if it is long. */
export const prettyJSON = (value) =>
  longText(value === undefined ? "" : JSON.stringify(value, null, 2),
    { max: 20_000, tag: "pre", label: "value" });

/** A button that copies a text. */
export function copyButton(text, { what = "" } = {}) {
  const element = button("Copy", async () => {
    await copied(text);
    element.textContent = "Copied";
    setTimeout(() => { element.textContent = "Copy"; }, 1500);
  }, { "aria-label": what ? `Copy ${what}` : null });
  return element;
}

async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Browsers have no clipboard interface for pages of another machine over plain HTTP.
  const area = h("textarea.off-screen", { value: text });
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (!isCopied) throw new Error("The browser does not let the page copy; select the text.");
}
