// A list that holds any number of rows and renders only those in sight.

import { h } from "./dom.js";
import { placeInOrder } from "./live-table.js";

const rowHeight = 30;
/** The number of rows of a page. */
export const pageSize = 100;
const pagesMax = 60;
/** The rows that are rendered above and below those in sight. */
const overscan = 6;
// Some browsers cap the height of elements at 17 million pixels. Beyond this, scrolling is scaled.
const heightMax = 15_000_000;

let listCount = 0;

/**
 * Creates the list.
 *
 * `load(index, previous, signal)` returns page `index` of `pageSize` rows as `{rows, isLast}`. If
 * the page before is loaded, `previous` has its rows, so that a query can continue after them. A
 * row has an `id`, unique in the list. `renderRow(row)` returns its content; `choose(row)` is
 * called for a click or the Enter key.
 */
export function virtualList({ label, load, renderRow, choose, signal }) {
  listCount += 1;
  const prefix = `list-${listCount}`;
  const space = h("div.space");
  const rows = h("div.rows");
  const element = h("div.virtual-list",
    { role: "listbox", tabindex: "0", "aria-label": label, onscroll: schedule, onkeydown: move },
    space, rows);
  let total = 0;
  let chosen = null;
  let active = -1;
  let pages = new Map();
  // The elements in sight by index.
  let items = new Map();
  let requests = new Map();
  let flashes = new Set();
  let frame = 0;
  let generation = 0;
  let timer = 0;
  let onError = () => {};

  const viewport = () => element.clientHeight || 400;
  const virtualHeight = () => total * rowHeight;
  const realHeight = () => Math.min(virtualHeight(), heightMax);

  function virtualTop() {
    const [virtual, real] = [virtualHeight() - viewport(), realHeight() - viewport()];
    return real > 0 ? element.scrollTop * (virtual / real) : 0;
  }

  function scrollToRow(index) {
    const [virtual, real] = [virtualHeight() - viewport(), realHeight() - viewport()];
    const top = virtualTop();
    let wanted = top;
    if (index * rowHeight < top) wanted = index * rowHeight;
    if ((index + 1) * rowHeight > top + viewport()) wanted = (index + 1) * rowHeight - viewport();
    if (wanted !== top) element.scrollTop = virtual > 0 ? wanted * (real / virtual) : 0;
  }

  const rowAt = (index) => pages.get(Math.floor(index / pageSize))?.rows[index % pageSize];

  function schedule() {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      show();
    });
  }

  function visible() {
    const top = virtualTop();
    const first = Math.max(0, Math.floor(top / rowHeight) - overscan);
    return [first, Math.min(total, Math.ceil((top + viewport()) / rowHeight) + overscan), top];
  }

  function show() {
    space.style.height = `${realHeight()}px`;
    const [first, last, top] = visible();
    const next = new Map();
    for (let index = first; index < last; index += 1) {
      const row = rowAt(index);
      // Elements stay while their row does: a click needs its press and release on one element.
      const old = items.get(index);
      const item = old && old.row === row ? old.element : makeItem(index, row);
      item.setAttribute("aria-setsize", total);
      item.setAttribute("aria-selected", String(row !== undefined && row.id === chosen));
      item.classList.toggle("active", index === active);
      if (row && flashes.has(row.id)) flash(item);
      item.style.transform = `translateY(${index * rowHeight - top + element.scrollTop}px)`;
      next.set(index, { row, element: item });
    }
    flashes = new Set();
    for (const [index, { element: item }] of items) {
      if (next.get(index)?.element !== item) item.remove();
    }
    placeInOrder(rows, [...next.values()].map(({ element: item }) => item));
    items = next;
    if (active >= first && active < last) {
      element.setAttribute("aria-activedescendant", `${prefix}-${active}`);
    } else {
      element.removeAttribute("aria-activedescendant");
    }
    request(first, last);
  }

  function makeItem(index, row) {
    return h("div.list-row", {
      role: "option",
      id: `${prefix}-${index}`,
      "aria-posinset": index + 1,
      onclick: () => pick(index),
    }, row ? renderRow(row) : h("span.quiet", "…"));
  }

  function flash(item) {
    item.classList.remove("flash");
    // The animation restarts only if the browser has laid out the item without the class.
    void item.offsetWidth;
    item.classList.add("flash");
  }

  function pagesOf(first, last) {
    const all = [];
    for (let page = Math.floor(first / pageSize); page * pageSize < last; page += 1) all.push(page);
    return all;
  }

  /** Loads the pages in sight: at once if they follow loaded pages, else when scrolling pauses. */
  function request(first, last) {
    clearTimeout(timer);
    const wanted = pagesOf(first, last);
    // Until the first page has arrived, nothing is in sight.
    if (!wanted.length) return;
    for (const [page, controller] of requests) if (!wanted.includes(page)) controller.abort();
    const missing = wanted.filter((page) => !pages.has(page) && !requests.has(page));
    if (!missing.length) return;
    const isNext = missing.every((page) => page === 0 || pages.has(page - 1));
    timer = setTimeout(() => missing.forEach(fetchPage), isNext ? 0 : 60);
  }

  async function fetchPage(page) {
    if (requests.has(page)) return;
    const controller = new AbortController();
    const mine = generation;
    requests.set(page, controller);
    try {
      const found = await load(page, pages.get(page - 1)?.rows,
        AbortSignal.any([controller.signal, signal]));
      if (mine !== generation) return;
      keep(page, found);
    } catch (error) {
      if (error.name !== "AbortError" && mine === generation) onError(error);
    } finally {
      if (requests.get(page) === controller) requests.delete(page);
    }
  }

  function keep(page, { rows: found, isLast }) {
    const before = pages.get(page)?.rows ?? [];
    pages.delete(page);
    const isSame = (row, index) => JSON.stringify(before[index]) === JSON.stringify(row);
    pages.set(page, {
      rows: found.map((row, index) => isSame(row, index) ? before[index] : row),
    });
    const end = page * pageSize + found.length;
    // A loaded page is more exact than a count, which may be older.
    if (isLast && (found.length > 0 || page === 0)) total = end;
    else if (!isLast) total = Math.max(total, end + 1);
    else total = Math.min(total, page * pageSize);
    const [first, last] = visible();
    for (const key of pages.keys()) {
      if (pages.size <= pagesMax) break;
      if ((key + 1) * pageSize < first || key * pageSize > last) pages.delete(key);
    }
    show();
  }

  function pick(index) {
    active = index;
    const row = rowAt(index);
    if (!row) return;
    chosen = row.id;
    show();
    choose(row);
  }

  function move(event) {
    const step = Math.max(1, Math.floor(viewport() / rowHeight) - 1);
    const target = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + step,
      PageUp: active - step,
      Home: 0,
      End: total - 1,
    }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (active >= 0) pick(active);
    } else if (target !== undefined && total > 0) {
      event.preventDefault();
      active = Math.max(0, Math.min(total - 1, target));
      scrollToRow(active);
      show();
    }
  }

  new ResizeObserver(schedule).observe(element);

  return {
    element,
    set onerror(handler) { onError = handler; },
    /** Sets the number of rows if it is known from elsewhere, such as a count. */
    set total(number) {
      total = Math.max(number, 0);
      show();
    },
    /** Marks the row with an ID as chosen. */
    set chosen(id) {
      chosen = id;
      schedule();
    },
    has: (id) => [...pages.values()].some((page) => page.rows.some((row) => row.id === id)),
    /** Scrolls to a row by its index. */
    scrollTo(index) {
      active = Math.min(index, total - 1);
      scrollToRow(active);
      schedule();
    },
    flash(ids) {
      ids.forEach((id) => flashes.add(id));
      schedule();
    },
    /** Forgets all rows and loads the first page. */
    async reset() {
      generation += 1;
      requests.forEach((controller) => controller.abort());
      [pages, requests, active] = [new Map(), new Map(), -1];
      total = 0;
      element.scrollTop = 0;
      await fetchPage(0);
      show();
    },
    /** Loads the pages in sight again; their old rows stay until the new ones have arrived. */
    async refresh() {
      const [first, last] = visible();
      const inSight = pagesOf(first, Math.max(last, 1)).filter((page) => pages.has(page));
      pages = new Map(inSight.map((page) => [page, pages.get(page)]));
      for (const page of inSight.length ? inSight : [0]) await fetchPage(page);
    },
  };
}
