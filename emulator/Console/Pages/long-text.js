// Texts from outside: cut if they are long, with control characters made visible.

import { button, codeArea, h, replace, tell, toast } from "./dom.js";
import { count } from "./format.js";

// Control characters, bidirectional marks and line separators could hide or reorder a text.
const controls =
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g;

/** A text with its invisible control characters escaped; line feeds and tabs stay. */
export const visible = (text) => String(text).replace(controls, (character) =>
  `\\u{${character.codePointAt(0).toString(16).toUpperCase()}}`);

/** The beginning of a text on one line, for a list. */
export function brief(value, max = 160) {
  const line = String(value ?? "").slice(0, max * 4).replace(/\s+/g, " ").trim();
  return h("bdi", visible(line.length > max ? `${line.slice(0, max)}…` : line));
}

/**
 * An element with a text; of a long text it shows the beginning, and a button for the rest.
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

/** A block of text, such as a response, that keeps its line breaks. */
export const longBlock = (text, label) => longText(text, { max: 20_000, tag: "pre", label });

/** A value as indented JSON, cut if it is long. */
export const prettyJSON = (value) =>
  longBlock(value === undefined ? "" : JSON.stringify(value, null, 2), "value");

/** A button that copies a text; `text` may be a function that makes it. */
export const copyButton = (label, text, properties = {}) =>
  button(label, async () => copy(typeof text === "function" ? await text() : text), properties);

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    // Without TLS, browsers let only pages of this machine use the clipboard.
    const box = codeArea(text, { readonly: true, "aria-label": "Text to copy" });
    tell({ title: "Copy this text", body: box });
    box.select();
  }
}
