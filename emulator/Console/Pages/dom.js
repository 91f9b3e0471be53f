// Elements, forms, dialogs and polling. All text becomes text nodes, so no value can become HTML.

// MARK: Elements

/**
 * Creates an element: `h("button.plain", { type: "button", onclick }, "Save")`.
 *
 * Properties that start with "on" become listeners. True sets an attribute without a value, or
 * "true" for one of ARIA; false, null and undefined leave the attribute out. Children are nodes,
 * texts, numbers, or arrays of these; false, null and undefined are left out.
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
  else if (value === true) element.setAttribute(name, name.startsWith("aria-") ? "true" : "");
  else if (value !== false && value !== null && value !== undefined) {
    element.setAttribute(name, value);
  }
}

const flattened = (children) => children.flat(Infinity)
  .filter((child) => child !== null && child !== undefined && child !== false);

/** Replaces the children of a node. */
export function replace(node, ...children) {
  node.replaceChildren(...flattened(children));
  return node;
}

/** Sets the text of an element, unless it has that text: screen readers announce each change. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The address of a place in the console; each segment may hold any text. */
export const to = (...segments) => `#/${segments.map(encodeURIComponent).join("/")}`;

/** The address of a Firestore document or collection in the console. */
export const toPath = (path) => to("firestore", ...path.split("/"));

let cardCount = 0;

/** A section with a border and a heading. */
export function card(title, ...children) {
  cardCount += 1;
  const id = `card-${cardCount}`;
  return h("section.card", { "aria-labelledby": id }, h("h2", { id }, title), children);
}

/** A table with a header row; `rows` are arrays of cells. */
export function table(headers, rows, { label, caption } = {}) {
  return h("table", { "aria-label": label }, caption && h("caption", caption),
    h("thead", h("tr", headers.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", rows.map((cells) => h("tr", cells.map((cell) => h("td", cell))))));
}

/** Rows of a name and a value; a row is left out if its value is empty or false. */
export function facts(rows) {
  const isEmpty = (value) => value === null || value === undefined || value === false
    || value === "";
  return h("dl.facts", rows.filter(([, value]) => !isEmpty(value))
    .map(([name, value]) => h("div", h("dt", name), h("dd", value))));
}

/** A state as a text with a color; the text alone says it, too. */
export const badge = (text, kind = "quiet") => h(`span.badge.${kind}`, text);

// MARK: Buttons and controls

/** A button with an action; it keeps the focus, and does nothing while the action runs. */
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

/** A small × that closes or deletes something; the label says what. */
export const crossButton = (label, action) =>
  button("×", action, { kind: "plain", "aria-label": label });

/** A group of buttons of which one is pressed; `choose` is called with its value. */
export function choice(label, options, chosen, choose) {
  const buttons = options.map(([value, text]) => h("button", {
    type: "button",
    "aria-pressed": String(value === chosen),
    onclick() {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === this));
      choose(value);
    },
  }, text));
  return h("div.choice", { role: "group", "aria-label": label }, buttons);
}

/** A drop-down list; an option is a text, or a value with its text. */
export function select(options, { value, ...properties } = {}) {
  const element = h("select", properties, options.map((option) => {
    const [name, text] = Array.isArray(option) ? option : [option, option];
    return h("option", { value: name }, text);
  }));
  // A value counts only once its option is there.
  if (value !== undefined) element.value = value;
  return element;
}

/** A text area for JSON, not checked for spelling; Enter with Control or Command submits it. */
export const codeArea = (value = "", properties = {}) => h("textarea.code", {
  spellcheck: "false",
  autocomplete: "off",
  onkeydown(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form?.requestSubmit();
  },
  ...properties,
  value,
});

let fieldCount = 0;

/** A control with its label, and a hint that screen readers read with it. */
export function field(label, control, hint) {
  fieldCount += 1;
  control.id ||= `field-${fieldCount}`;
  const hintID = `${control.id}-hint`;
  if (hint) control.setAttribute("aria-describedby", hintID);
  return h("div.field", h("label", { for: control.id }, label), control,
    hint && h("small", { id: hintID }, hint));
}

/** A checkbox with its label behind it. */
export const checkField = (label, control) => h("label.check", control, label);

/** Delays an action until no call has come for a moment, such as while a person types. */
export function debounced(action, milliseconds = 150) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}

// MARK: Errors

/** Shows a short message for some seconds; errors stay until they are closed. */
export function toast(text, { isError = false } = {}) {
  const close = () => entry.remove();
  const entry = h(isError ? "div.toast.error" : "div.toast", text,
    crossButton("Close this message", close));
  document.getElementById("toasts").append(entry);
  if (!isError) setTimeout(close, 4000);
}

/** Runs an action of a person; if it fails, shows the error and returns undefined. */
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    if (error.name !== "AbortError") toast(error.message, { isError: true });
    return undefined;
  }
}

/** A line for an error, which screen readers announce; hidden while it has no text. */
export const problemLine = (text = "") => h("p.problem", { role: "alert", hidden: !text }, text);

/** Shows an error in a problem line; without an error, hides the line. */
export function showProblem(line, error) {
  line.hidden = !error;
  line.textContent = error?.message ?? "";
}

// MARK: Forms and dialogs

/**
 * Runs an action when a form is submitted, once at a time.
 *
 * An error is passed to `onError`; without it, a problem line in the form shows the error.
 */
export function whenSubmitted(form, action, onError) {
  const submit = form.querySelector("[type=submit]");
  const problem = problemLine();
  if (!onError) {
    const actions = submit.closest(".actions");
    if (actions) actions.before(problem);
    else form.append(problem);
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    // A disabled button would lose the focus.
    if (submit.ariaDisabled === "true") return;
    submit.ariaDisabled = "true";
    showProblem(problem, null);
    try {
      await action(event);
    } catch (error) {
      if (onError) onError(error);
      else if (error.name !== "AbortError") showProblem(problem, error);
    } finally {
      submit.ariaDisabled = null;
    }
  });
  return form;
}

/**
 * Asks in a modal dialog; resolves with what `read` returns, with true if that is nothing, or with
 * null if the dialog is closed.
 *
 * An error of `read`, such as for malformed input, is shown and the dialog stays. Escape closes it;
 * the signal that `read` gets aborts then.
 */
export function ask({ title, body, action = "Save", isDangerous = false, read = () => true }) {
  return new Promise((resolve) => {
    let result = null;
    const closed = new AbortController();
    const form = h("form", { method: "dialog" }, body, h("div.actions",
      h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
      h(isDangerous ? "button.danger" : "button.primary", { type: "submit" }, action)));
    whenSubmitted(form, async () => {
      result = (await read(closed.signal)) ?? true;
      dialog.close();
    });
    const dialog = showDialog(title, form);
    dialog.addEventListener("close", () => {
      closed.abort();
      resolve(result);
    });
  });
}

/** Shows something in a modal dialog with no other button than "Close". */
export function tell({ title, body }) {
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = showDialog(title, [body, h("div.actions", close)]);
}

function showDialog(title, content) {
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" },
    h("h2", { id: "dialog-title" }, title), content);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// MARK: Polling

/**
 * Calls a function now, and again `milliseconds` after each call has ended.
 *
 * It ends when the signal aborts, and pauses while the window is hidden. After an error, which is
 * passed to `onError`, the calls continue.
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

/** For `poll`: shows an error as the text of an element. */
export const errorIn = (element) => (error) => setText(element, error.message);
