// Columns side by side, one for each part of a path.

/** A column with a signal of its own, which aborts when the column is closed. */
export function makeColumn(make, signal) {
  const closed = new AbortController();
  const column = make(AbortSignal.any([closed.signal, signal]));
  return {
    ...column,
    close() {
      closed.abort();
      column.element.remove();
    },
  };
}

/**
 * The columns of a path in an element; `make(id, signal)` makes the column with an ID.
 *
 * `show(ids, names)` shows the columns with these IDs, and marks in each one the name that leads to
 * the next. Columns that are shown already stay.
 */
export function columnStack(element, make, signal) {
  const shown = [];
  return {
    shown,
    show(ids, names) {
      let same = 0;
      while (same < shown.length && shown[same].id === ids[same]) same += 1;
      shown.splice(same).forEach((column) => column.close());
      for (const id of ids.slice(same)) {
        const column = { id, ...makeColumn((signal) => make(id, signal), signal) };
        shown.push(column);
        element.append(column.element);
      }
      shown.forEach((column, index) => column.choose(names[index] ?? null));
      shown.at(-1).element.scrollIntoView({ block: "nearest", inline: "end" });
    },
  };
}
