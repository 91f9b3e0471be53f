// The frame around the views: navigation, the connection to the suite, colors.

import { openSession, session } from "./api.js";
import { ask, field, h, problemLine, replace, setText, to } from "./dom.js";

/** The views in the order of the navigation; a view is shown if the suite has its service. */
const views = [
  { name: "", title: "Home", module: "./home.js" },
  { name: "firestore", title: "Firestore", module: "./firestore.js", service: "firestore" },
  { name: "database", title: "Realtime Database", module: "./database.js", service: "database" },
  { name: "functions", title: "Functions", module: "./functions.js", service: "functions" },
  { name: "events", title: "Events", module: "./events.js", service: "functions" },
  { name: "logs", title: "Logs", module: "./logs.js", service: "functions" },
  { name: "auth", title: "Auth", module: "./auth.js", service: "auth" },
  { name: "rules", title: "Rules", module: "./rules.js", service: "firestore" },
  { name: "flags", title: "Flags", module: "./flags.js", service: "firestore" },
  { name: "vectors", title: "Vectors", module: "./vectors.js", service: "vectors" },
  { name: "time", title: "Time and faults", module: "./time.js", service: "functions" },
];

const main = document.getElementById("main");
const notice = document.getElementById("notice");
let leave = new AbortController();
let shown = null;

/**
 * Shows the view that the address names.
 *
 * A view's `render(root, segments, signal)` may return a function that takes a new address within
 * the view; the view is rendered anew only if the function returns false, or if there is none.
 */
async function route() {
  const segments = location.hash.replace(/^#\/?/, "").split("/").map(decoded).filter(Boolean);
  const view = views.find((view) => view.name === (segments[0] ?? "")) ?? views[0];
  for (const link of document.querySelectorAll("#navigation a")) {
    if (link.dataset.name === view.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shown?.view === view && shown.moved?.(segments.slice(1))) return;
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  document.title = `${view.title} – ${session.project} – Hearth`;
  try {
    const { render } = await import(view.module);
    if (signal.aborted) return;
    const root = h("div.view", { "data-view": view.name || "home" });
    shown = { view };
    replace(main, root);
    shown.moved = await render(root, segments.slice(1), signal);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    replace(main, problemLine(error.message));
    shown = null;
  }
}

function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function frame() {
  setText(document.getElementById("project"), session.project);
  const present = views.filter((view) => !view.service || session.services[view.service]);
  replace(document.getElementById("navigation"), present.map(({ name, title }) =>
    h("a", { href: name ? to(name) : "#/", "data-name": name }, title)));
}

// MARK: Connection

async function connect() {
  try {
    await openSession();
  } catch (error) {
    if (error.status !== 403) throw error;
    const input = h("input", { autocomplete: "off", required: true });
    await ask({
      title: "Open the console",
      body: [h("p", error.message), field("Token", input)],
      action: "Open",
      read: () => openSession(input.value.trim()),
    });
  }
}

const reconnectMilliseconds = 500;
let isWaiting = false;

/** Says that the suite does not respond, and shows the view again as soon as it does. */
async function reconnect() {
  if (isWaiting) return;
  isWaiting = true;
  notice.hidden = false;
  setText(notice, "The suite does not respond. The console continues as soon as it is back.");
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, reconnectMilliseconds));
    try {
      await openSession();
      break;
    } catch (error) {
      if (error.code !== "LOST" && error.status < 500) break;
    }
  }
  notice.hidden = true;
  isWaiting = false;
  await redraw();
}

/** Shows the view again, since another suite may have other services and data. */
async function redraw() {
  shown = null;
  frame();
  await route();
}

// MARK: Colors

const themes = ["system", "light", "dark"];

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  setText(document.getElementById("theme"), `Colors: ${theme}`);
  localStorage.setItem("hearth-theme", theme);
}

document.getElementById("theme").addEventListener("click", () => {
  const current = themes.indexOf(document.documentElement.dataset.theme);
  applyTheme(themes[(current + 1) % themes.length]);
});

// MARK: Start

applyTheme(localStorage.getItem("hearth-theme") ?? "system");
document.addEventListener("suite-restarted", redraw);
document.addEventListener("suite-lost", reconnect);
window.addEventListener("hashchange", route);
try {
  await connect();
  frame();
  await route();
} catch (error) {
  if (error.code !== "LOST") replace(main, problemLine(error.message));
}
