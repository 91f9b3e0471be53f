// Elements, dialogs and polling. All text becomes text nodes, so no value can become HTML.

/**
 * Creates an element: `h("button.plain", { type: "button", onclick }, "Save")`.
 *
 * Properties that start with "on" become listeners; true, false and null set, or leave out, an
 * attribute. Children are nodes, texts, numbers, or arrays of them; null and false are left out.
 */
export function h(selector, properties = {}, ...children) {
  if (properties === null || typeof properties !== "object" || Array.isArray(properties)
    || properties instanceof Node) {
    children.unshift(properties);
    properties = {};
  }
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties)) setProperty(element, name, value);
  element.append(...flattened(children));
  return element;
}

const svgNamespace = "http://www.w3.org/2000/svg";

/** Creates an SVG element, as `h` does for HTML. */
export function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS(svgNamespace, tag);
  for (const [name, value] of Object.entries(properties)) setProperty(element, name, value);
  element.append(...flattened(children));
  return element;
}

function setProperty(element, name, value) {
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "value" || name === "checked") element[name] = value;
  else if (value === true) element.setAttribute(name, "");
  else if (value !== false && value !== null && value !== undefined) {
    element.setAttribute(name, value);
  }
}

const flattened = (children) =>
  children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

/** Replaces the children of a node. */
export function replace(node, ...children) {
  node.replaceChildren(...flattened(children));
  return node;
}

/** Shows a short message for some seconds; errors stay until they are closed. */
export function toast(text, { isError = false } = {}) {
  const close = () => entry.remove();
  const entry = h(isError ? "div.toast.error" : "div.toast", text,
    h("button.plain", { type: "button", "aria-label": "Close this message", onclick: close }, "×"));
  document.getElementById("toasts").append(entry);
  if (!isError) setTimeout(close, 4000);
}

/** Runs an action of a person and shows its error, if any; returns undefined then. */
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    if (error.name !== "AbortError") toast(error.message, { isError: true });
    return undefined;
  }
}

/** A button with an action; it keeps the focus and cannot be pressed again while the action runs. */
export function button(label, action, { kind = "", ...properties } = {}) {
  const element = h(kind ? `button.${kind}` : "button", { type: "button", ...properties }, label);
  element.addEventListener("click", async (event) => {
    if (element.ariaDisabled === "true") return;
    element.ariaDisabled = "true";
    await attempt(() => action(event));
    element.ariaDisabled = null;
  });
  return element;
}

/**
 * Asks in a modal dialog; resolves with what `read` returns, or null if it is closed.
 *
 * An error of `read`, such as a malformed input, is shown and the dialog stays. Escape closes it.
 */
export function ask({ title, body, action = "Save", isDangerous = false, read = () => true }) {
  return new Promise((resolve) => {
    const problem = h("p.problem", { role: "alert", hidden: true });
    const form = h("form", { method: "dialog" },
      h("h2", { id: "dialog-title" }, title), body, problem,
      h("div.actions",
        h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
        h(isDangerous ? "button.danger" : "button.primary", { type: "submit" }, action)));
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, form);
    let result = null;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        result = await read();
        dialog.close();
      } catch (error) {
        problem.hidden = false;
        problem.textContent = error.message;
      }
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(result);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** A labelled control of a form. */
let fieldCount = 0;
export function field(label, control, hint) {
  fieldCount += 1;
  control.id ||= `field-${fieldCount}`;
  const hintID = `${control.id}-hint`;
  if (hint) control.setAttribute("aria-describedby", hintID);
  return h("div.field", h("label", { for: control.id }, label), control,
    hint && h("small", { id: hintID }, hint));
}

/** A table with a header row; `rows` are arrays of cells. */
export function table(headers, rows, { caption } = {}) {
  return h("table", caption && h("caption", caption),
    h("thead", h("tr", headers.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", rows.map((cells) => h("tr", cells.map((cell) => h("td", cell))))));
}

/**
 * Calls a function now and then again and again, `milliseconds` after the last call has ended.
 *
 * It pauses while the window is hidden and ends with the signal. Errors are left to `onError`.
 */
export function poll(action, milliseconds, signal, onError = () => {}) {
  let timer;
  const run = async () => {
    if (signal.aborted) return;
    if (!document.hidden) {
      try {
        await action();
      } catch (error) {
        if (!signal.aborted && error.name !== "AbortError") onError(error);
      }
    }
    if (!signal.aborted) timer = setTimeout(run, milliseconds);
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  return run();
}

/** A link's address within the console; each segment may hold any text. */
export const to = (...segments) => `#/${segments.map(encodeURIComponent).join("/")}`;

/** A time of day with the date if it is not today's, in the reader's time zone. */
export function time(text) {
  if (!text) return "";
  const date = new Date(text);
  const isToday = date.toDateString() === new Date().toDateString();
  return h("time", { datetime: text, title: text },
    isToday ? date.toLocaleTimeString() : date.toLocaleString());
}

/** A number with separators of thousands. */
export const count = (number) => Number(number).toLocaleString("en-US");

/** A duration in milliseconds or seconds. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
}
