// Tables and lists that change often: only what has changed is drawn, so focus and selection stay.

import { h } from "./dom.js";

/**
 * A table whose rows are kept by key.
 *
 * A column has a `title` and either `text(item)` or `cell(item)`; a cell is `{node, update(item)}`.
 * Columns with `isMinor` are left out on narrow screens. Call `update(items)` to draw the items.
 */
export function liveTable(columns, { label, key = (item) => item.name } = {}) {
  const body = h("tbody");
  const rows = keyedChildren(body, { key, make: (item) => makeRow(columns, item) });
  const headers = columns.map((column) =>
    h(cellName("th", column), { scope: "col" }, column.title));
  const element = h("div.scroll",
    h("table.live", { "aria-label": label }, h("thead", h("tr", headers)), body));
  return { element, update: rows.update };
}

const cellName = (tag, column) =>
  [tag, column.isMinor && "minor", column.isNumber && "number"].filter(Boolean).join(".");

function makeRow(columns, item) {
  const cells = columns.map((column) => (column.cell ?? textCell(column.text))(item));
  const node = h("tr", columns.map((column, index) =>
    h(cellName("td", column), cells[index].node)));
  return { node, update: (item) => cells.forEach((cell) => cell.update?.(item)) };
}

function textCell(text) {
  return (item) => {
    let shown = String(text(item) ?? "");
    const node = document.createTextNode(shown);
    return {
      node,
      update(item) {
        const next = String(text(item) ?? "");
        if (next !== shown) node.data = shown = next;
      },
    };
  };
}

/** The children of a node, kept by key; `make(item)` returns `{node, update(item)}`. */
export function keyedChildren(parent, { key, make }) {
  let entries = new Map();
  return {
    update(items) {
      const next = new Map();
      for (const item of items) {
        const name = key(item);
        const entry = entries.get(name) ?? make(item);
        entry.update?.(item);
        next.set(name, entry);
      }
      for (const [name, entry] of entries) if (!next.has(name)) entry.node.remove();
      placeInOrder(parent, [...next.values()].map(({ node }) => node));
      entries = next;
    },
  };
}

/** Makes nodes the children of a parent in this order; nodes that are in place are not moved. */
export function placeInOrder(parent, nodes) {
  let position = parent.firstChild;
  for (const node of nodes) {
    if (node === position) position = position.nextSibling;
    else parent.insertBefore(node, position);
  }
}
