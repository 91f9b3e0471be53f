// The suite's clock, injected faults, and the trigger switch.

import { hub, request } from "./api.js";
import { button, card, checkField, errorIn, field, h, poll, replace, setText,
  toast } from "./dom.js";
import { counted, span } from "./format.js";

const pollMilliseconds = 1000;

/** Enables or disables the triggers; disabling first waits for the events under way. */
export const setTriggers = (isEnabled) => request("hub",
  `/functions/${isEnabled ? "enable" : "disable"}BackgroundTriggers`, { method: "PUT" });

/** The faults that are set, in words; empty if there are none. */
export function faultsInWords(plan) {
  if (!plan) return "";
  const percent = (part) => `${Math.round(part * 1000) / 10} %`;
  return [
    plan.duplicates > 0 && `${percent(plan.duplicates)} of the events arrive twice`,
    plan.drops > 0 && `the first attempt of ${percent(plan.drops)} is lost`,
    plan.reordering && "events of a document may overtake each other",
  ].filter(Boolean).join(", ");
}

export async function render(root, segments, signal) {
  root.append(h("h1", "Time and faults"), h("div.cards",
    clockCard(signal), triggersCard(signal), faultsCard(signal)));
}

// MARK: Clock

function clockCard(signal) {
  const now = h("p.clock-now", "…");
  const ahead = h("p", { role: "status" });
  const progress = h("p.warn", { role: "status", hidden: true });
  const stop = h("button", { type: "button", hidden: true, onclick: () => jump?.abort() },
    "Stop here");
  const target = h("input", { type: "datetime-local", step: "1" });
  let jump = null;

  function show(clock) {
    const date = new Date(clock.now);
    replace(now, h("time", { datetime: clock.now, title: clock.now }, date.toLocaleString()));
    setText(ahead, clock.aheadSeconds < 1 ? "The suite's time is this machine's time."
      : `The suite is ${span(clock.aheadSeconds)} ahead of this machine.`);
    if (!target.value) target.value = localText(new Date(date.getTime() + 3600_000));
  }

  async function advance(body) {
    if (jump) throw new Error("The clock is already on its way; stop it first.");
    jump = new AbortController();
    progress.hidden = stop.hidden = false;
    setText(progress, "Running what becomes due on the way …");
    try {
      show(await hub("/clock", { body, signal: jump.signal }));
    } catch (error) {
      if (error.name !== "AbortError") throw error;
      show(await hub("/clock"));
    } finally {
      jump = null;
      progress.hidden = stop.hidden = true;
    }
  }

  async function advanceToTarget() {
    const date = new Date(target.value);
    if (Number.isNaN(date.getTime())) throw new Error("Enter a date and a time.");
    await advance({ to: date.toISOString() });
  }

  poll(async () => show(await hub("/clock", { signal })), pollMilliseconds, signal,
    errorIn(ahead));
  return card("Clock", now, ahead,
    h("p.quiet", "Retries, tasks, schedules and the times of documents follow this clock. A jump "
      + "runs everything that becomes due, in order. Time never goes back; the next start uses "
      + "the machine's time again. A function that asks the machine for the time does not see "
      + "the jump."),
    h("div.row",
      button("+1 minute", () => advance({ advanceSeconds: 60 })),
      button("+1 hour", () => advance({ advanceSeconds: 3600 })),
      button("+1 day", () => advance({ advanceSeconds: 86_400 }))),
    h("div.row", field("Advance to", target), button("Go there", advanceToTarget)),
    h("div.row", progress, stop));
}

/** A time in the format of `datetime-local`, in the reader's time zone. */
function localText(date) {
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}

// MARK: Triggers

function triggersCard(signal) {
  const state = h("p", { role: "status" });
  const details = h("p.quiet");
  let isSwitching = false;
  const action = button("…", async () => {
    const isEnabled = action.dataset.enables === "true";
    isSwitching = true;
    setText(action, isEnabled ? "Enabling …" : "Waiting for events under way …");
    try {
      await setTriggers(isEnabled);
    } finally {
      isSwitching = false;
      await load();
    }
  });

  async function load() {
    const triggers = await hub("/triggers", { signal });
    setText(state, triggers.isEnabled ? "Triggers are on." : "Triggers are off.");
    state.className = triggers.isEnabled ? "good" : "warn";
    setText(details, [
      triggers.offSeconds != null && `Off for ${span(triggers.offSeconds)}; on again by themselves `
        + `in ${span(triggers.onAgainSeconds)}.`,
      triggers.eventsSkipped > 0
        && `${counted(triggers.eventsSkipped, "event")} reached no function since the start.`,
    ].filter(Boolean).join(" "));
    if (isSwitching) return;
    action.dataset.enables = String(!triggers.isEnabled);
    setText(action, triggers.isEnabled ? "Disable triggers" : "Enable triggers");
  }

  poll(load, pollMilliseconds, signal, errorIn(state));
  return card("Triggers", state, details,
    h("p.quiet", "While triggers are off, events of documents and users reach no function, neither "
      + "then nor later, for example while test data is loaded. Tasks and schedules continue."),
    h("div.row", action));
}

// MARK: Faults

function faultsCard(signal) {
  const state = h("p", { role: "status" }, "…");
  const duplicates = slider("Duplicates", "The share of events that are delivered twice.");
  const drops = slider("Drops", "The share of events whose first attempt is lost.");
  const reordering = h("input", { type: "checkbox" });
  const seed = h("input", { type: "number", min: "0", step: "1", value: "7" });
  let isFilled = false;

  function show(plan) {
    const words = faultsInWords(plan);
    setText(state, words ? `Faults are on: ${words} (seed ${plan.seed}).` : "No faults.");
    state.className = words ? "warn" : "good";
    if (isFilled) return;
    isFilled = true;
    if (!plan) return;
    duplicates.set(plan.duplicates);
    drops.set(plan.drops);
    reordering.checked = plan.reordering;
    seed.value = plan.seed;
  }

  async function apply() {
    if (!/^\d+$/.test(seed.value)) throw new Error("The seed is a whole number from 0.");
    show(await hub("/faults", {
      method: "PUT",
      body: {
        seed: Number(seed.value),
        duplicates: duplicates.value(),
        drops: drops.value(),
        reordering: reordering.checked,
      },
    }));
    toast("The faults are set.");
  }

  async function clear() {
    await hub("/faults", { method: "DELETE" });
    duplicates.set(0);
    drops.set(0);
    reordering.checked = false;
    show(null);
  }

  async function disconnect() {
    const { count } = await hub("/faults/disconnect", { method: "POST" });
    toast(`The connections of ${counted(count, "client")} are cut.`);
  }

  poll(async () => show(await hub("/faults", { signal })), pollMilliseconds, signal,
    errorIn(state));
  return card("Faults", state,
    h("p.quiet", "With faults, events arrive twice, late or out of order, as they may in "
      + "production. Nothing is lost: a dropped event is delivered later. Functions that are "
      + "ready for it leave the same data. The seed decides which events are hit, so the same "
      + "writes meet the same faults again."),
    duplicates.element, drops.element,
    h("div.field", checkField("Reordering", reordering),
      h("small", "Events of one document may overtake each other.")),
    field("Seed", seed),
    h("div.row", button("Set the faults", apply, { kind: "primary" }),
      button("Clear the faults", clear),
      button("Cut the Realtime Database's connections", disconnect)));
}

/** A slider of percentages with its value beside the label. */
function slider(label, hint) {
  const input = h("input", { type: "range", min: "0", max: "100", step: "1", value: "0",
    oninput: show });
  const output = h("output");
  const element = field(label, input, hint);
  const head = h("div.row.slider-head");
  element.firstElementChild.replaceWith(head);
  head.append(h("label", { for: input.id }, label), output);
  function show() {
    output.textContent = `${input.value} %`;
    input.setAttribute("aria-valuetext", `${input.value} percent`);
  }
  show();
  return {
    element,
    value: () => Number(input.value) / 100,
    set(part) {
      input.value = Math.round(part * 100);
      show();
    },
  };
}
