// A list of entries beside the details of the chosen entry, and what such views share.

import { attempt, h, replace } from "./dom.js";
import { count } from "./format.js";
import { keyedChildren } from "./live-table.js";

const pageSize = 100;

/**
 * A list of entries that is updated in place and shows one page at a time.
 *
 * `key(item)` identifies an item, `entry(item)` makes its `li`, and `state(item)` is a text: the
 * entry is made again when it changes. `empty`, or what it returns, is shown without items.
 * `show(items)` of the result replaces the items; `reset()` goes back to the first page.
 */
export function entryList({ key, state, entry, empty, label }) {
  const list = h("ul.entries", { "aria-label": label });
  const rows = keyedChildren(list, { key, make: makeEntry });
  const nothing = h("p.quiet", { hidden: true });
  const more = h("button", { type: "button", hidden: true, onclick: showMore });
  let limit = pageSize;
  let all = [];

  function makeEntry(item) {
    const node = entry(item);
    let shown = state(item);
    return {
      node,
      update(item) {
        const text = state(item);
        if (text === shown) return;
        shown = text;
        const hadFocus = node.contains(document.activeElement);
        node.replaceChildren(...entry(item).childNodes);
        if (hadFocus) node.querySelector("a, button")?.focus({ preventScroll: true });
      },
    };
  }

  function showMore() {
    limit += pageSize;
    update();
  }

  function update() {
    rows.update(all.slice(0, limit));
    nothing.hidden = all.length > 0;
    nothing.textContent = typeof empty === "function" ? empty() : empty;
    list.hidden = all.length === 0;
    more.hidden = all.length <= limit;
    const next = Math.min(pageSize, all.length - limit);
    more.textContent = `Show ${count(next)} more of ${count(all.length)}`;
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

/**
 * The pane beside a list that shows the details of what is chosen.
 *
 * `show(element, chosen, signal)` fills the pane; the signal aborts as soon as something else is
 * chosen. `choose(null)` of the result empties the pane.
 */
export function detailPane(root, { label, signal, show }) {
  const element = h("section.detail", { "aria-label": label });
  let leave = new AbortController();
  return {
    element,
    choose(chosen) {
      leave.abort();
      leave = new AbortController();
      root.classList.toggle("has-detail", chosen !== null);
      replace(element);
      if (chosen === null) return;
      attempt(() => show(element, chosen, AbortSignal.any([signal, leave.signal])));
    },
  };
}

/** A link back to the list, for windows in which the list is hidden. */
export const backLink = (text, href) => h("p.back", h("a", { href }, `← ${text}`));

/** Fills a pane and moves the focus to its heading. */
export function fillPane(element, ...children) {
  replace(element, ...children);
  const heading = element.querySelector("h2");
  heading.tabIndex = -1;
  heading.focus();
}

/** Links between the parts of a view; a link is its name, title and address. */
export function parts(label, links, current) {
  return h("nav.parts", { "aria-label": label }, links.map(([name, title, href]) =>
    h("a", { href, "aria-current": name === current && "page" }, title)));
}
