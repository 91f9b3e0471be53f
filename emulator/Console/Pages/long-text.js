// Texts from outside: cut if they are long, with control characters made visible.

import { button, count, h, replace, toast } from "./dom.js";

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

/** A button that copies a text; `text` may be a function that makes it. */
export function copyButton(label, text, properties = {}) {
  return button(label, async () => copy(typeof text === "function" ? await text() : text), properties);
}

/** Copies a text, or shows it to be copied. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    // Browsers let only pages of this machine, or with TLS, use the clipboard.
    const box = h("textarea", { readonly: true, "aria-label": "Text to copy", value: text });
    const dialog = h("dialog", { "aria-label": "Copy" }, h("p", "Copy this text:"), box,
      h("div.actions", h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    box.select();
  }
}
