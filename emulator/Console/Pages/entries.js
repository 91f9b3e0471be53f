// Lists of entries beside the details of one, and what their views share.

import { count, h } from "./dom.js";
import { keyedChildren } from "./live-table.js";
import { visible } from "./long-text.js";

/** A text on one line for a list. */
export function brief(value, max = 160) {
  const line = String(value ?? "").slice(0, max * 4).replace(/\s+/g, " ").trim();
  return h("bdi", visible(line.length > max ? `${line.slice(0, max)}…` : line));
}

const pageSize = 100;

/**
 * A list of entries that is updated in place and shows a page of them at a time.
 *
 * `key(item)` identifies an item, `state(item)` is a text that changes when its entry has to, and
 * `entry(item)` makes the entry, a `li`. `show(items)` replaces the items.
 */
export function entryList({ key, state, entry, empty, label }) {
  const list = h("ul.entries", { "aria-label": label });
  const rows = keyedChildren(list, { key, make(item) {
    const node = entry(item);
    let shown = state(item);
    return { node, update(item) {
      const text = state(item);
      if (text === shown) return;
      shown = text;
      const hadFocus = node.contains(document.activeElement);
      node.replaceChildren(...entry(item).childNodes);
      if (hadFocus) node.querySelector("a, button")?.focus({ preventScroll: true });
    } };
  } });
  const nothing = h("p.quiet", { hidden: true });
  const more = h("button", { type: "button", hidden: true, onclick() {
    limit += pageSize;
    update();
  } });
  let limit = pageSize;
  let all = [];

  function update() {
    rows.update(all.slice(0, limit));
    nothing.hidden = all.length > 0;
    nothing.textContent = typeof empty === "function" ? empty() : empty;
    list.hidden = all.length === 0;
    more.hidden = all.length <= limit;
    more.textContent = `Show ${count(Math.min(pageSize, all.length - limit))} more of ${count(all.length)}`;
  }

  return {
    element: h("div.entry-list", list, nothing, more),
    show(items) {
      all = items;
      update();
    },
    reset() {
      limit = pageSize;
    },
  };
}

/** The state of something as a text with a color; the text alone says it, too. */
export const badge = (text, kind = "quiet") => h(`span.badge.${kind}`, text);

/** Rows of a name and a value; those without a value are left out. */
export function facts(rows) {
  return h("dl.facts", rows.filter(([, value]) => value !== null && value !== undefined
    && value !== false && value !== "")
    .map(([name, value]) => h("div", h("dt", name), h("dd", value))));
}

/** A group of buttons of which one is pressed; `choose` is called with its value. */
export function choice(label, options, chosen, choose) {
  const buttons = options.map(([value, text]) => h("button", {
    type: "button", "aria-pressed": String(value === chosen), onclick() {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === this));
      choose(value);
    },
  }, text));
  return h("div.choice", { role: "group", "aria-label": label }, buttons);
}

/** Links between the parts of a view. */
export function parts(label, links, current) {
  return h("nav.parts", { "aria-label": label }, links.map(([name, title, href]) =>
    h("a", { href, "aria-current": name === current ? "page" : null }, title)));
}

/** The part of a view that shows what is chosen in its list; its heading gets the focus. */
export function focusHeading(element) {
  const heading = element.querySelector("h1, h2");
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus();
}

/** Delays calls until none has come for a moment, such as while a person types. */
export function whenStill(action, milliseconds = 150) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}

/** Runs an action when a form is submitted; its error is shown in the form. */
export function whenSubmitted(form, action) {
  const problem = h("p.problem", { role: "alert", hidden: true });
  const submit = form.querySelector("[type=submit]");
  if (submit.closest(".actions")) submit.closest(".actions").before(problem);
  else form.append(problem);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    problem.hidden = true;
    try {
      await action();
    } catch (error) {
      problem.hidden = error.name === "AbortError";
      problem.textContent = error.message;
    }
    submit.disabled = false;
  });
  return form;
}
