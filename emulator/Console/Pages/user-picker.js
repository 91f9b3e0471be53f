// Chooses whose request it is: the administrator, nobody, or a user.

import { auth } from "./api.js";
import { field, h } from "./dom.js";

/** Functions have no administrator, so their choice is remembered apart from that of documents. */
const storageKeys = { administrator: "hearth-user", users: "hearth-caller" };

/**
 * A control that chooses a user by id, with claims; the last choice is remembered.
 *
 * Returns the element and `user()`, which is `"owner"`, null or `{uid, claims}`; it throws if the
 * claims are not JSON. `onchange` is called after each change.
 */
export function userPicker({ label = "As", administrator = true, onchange = () => {} } = {}) {
  const storageKey = administrator ? storageKeys.administrator : storageKeys.users;
  const remembered = localStorage.getItem(storageKey) ?? (administrator ? "owner" : "");
  const kind = h("select", { onchange: update },
    administrator && h("option", { value: "owner" }, "administrator"),
    h("option", { value: "none" }, "nobody (signed out)"),
    h("option", { value: "user" }, "user …"));
  const list = h("datalist", { id: `users-${Math.random().toString(36).slice(2)}` });
  const uid = h("input", { list: list.id, placeholder: "user id", autocomplete: "off",
    "aria-label": "User id", onchange: update });
  const claims = h("input", { placeholder: 'claims, such as {"admin": true}', autocomplete: "off",
    "aria-label": "Claims as JSON", onchange: update });
  if (remembered.startsWith("user:")) {
    kind.value = "user";
    uid.value = remembered.slice(5);
    claims.value = localStorage.getItem(`${storageKey}-claims`) ?? "";
  } else {
    kind.value = remembered === "none" || !administrator ? remembered || "user" : "owner";
  }
  const element = h("span.user-picker", field(label, kind), uid, claims, list);

  function show() {
    uid.hidden = claims.hidden = kind.value !== "user";
  }

  async function update() {
    show();
    localStorage.setItem(storageKey, kind.value === "user" ? `user:${uid.value}` : kind.value);
    localStorage.setItem(`${storageKey}-claims`, claims.value);
    onchange();
  }

  async function loadUsers() {
    const found = await auth("/accounts:query", { body: { limit: "200" } }).catch(() => ({}));
    list.replaceChildren(...(found.userInfo ?? []).map((user) =>
      h("option", { value: user.localId }, user.displayName ?? user.email ?? "")));
  }

  show();
  loadUsers();
  return {
    element,
    user() {
      if (kind.value === "owner") return "owner";
      if (kind.value === "none") return null;
      if (!uid.value) throw new Error("Enter the user's id, such as tina.");
      return { uid: uid.value, claims: parsed(claims.value) };
    },
  };
}

function parsed(claims) {
  if (!claims.trim()) return {};
  try {
    return JSON.parse(claims);
  } catch (error) {
    throw new Error(`The claims are not JSON: ${error.message}`);
  }
}
