// Chooses the user of a request.

import { auth } from "./api.js";
import { field, h, select } from "./dom.js";
import { claimsOf } from "./values.js";

const storageKey = "hearth-caller";
const claimsKey = `${storageKey}-claims`;
/** The users that are suggested while a person types. */
const suggestionsMax = 200;

let pickerCount = 0;

/**
 * A control that chooses a user by ID, with claims, or nobody; the last choice is remembered.
 *
 * `user()` of the result is `{uid, claims}`, or null for nobody; it throws if the input is wrong.
 */
export function userPicker(label = "As") {
  pickerCount += 1;
  const remembered = localStorage.getItem(storageKey) ?? "";
  const kind = select([["none", "nobody (signed out)"], ["user", "user …"]],
    { value: remembered === "none" ? "none" : "user", onchange: keep });
  const list = h("datalist", { id: `users-${pickerCount}` });
  const input = (name, properties) =>
    h("input", { autocomplete: "off", "aria-label": name, onchange: keep, ...properties });
  const uid = input("User ID", { list: list.id, placeholder: "user ID" });
  const claims = input("Claims as JSON", { placeholder: 'claims, such as {"admin": true}' });
  if (remembered.startsWith("user:")) {
    uid.value = remembered.slice("user:".length);
    claims.value = localStorage.getItem(claimsKey) ?? "";
  }

  function show() {
    uid.hidden = claims.hidden = kind.value !== "user";
  }

  function keep() {
    show();
    localStorage.setItem(storageKey, kind.value === "user" ? `user:${uid.value}` : kind.value);
    localStorage.setItem(claimsKey, claims.value);
  }

  async function loadUsers() {
    // Without suggestions, the ID can still be typed.
    const found = await auth("/accounts:query", { body: { limit: String(suggestionsMax) } })
      .catch(() => ({}));
    list.replaceChildren(...(found.userInfo ?? []).map((user) =>
      h("option", { value: user.localId }, user.displayName ?? user.email ?? "")));
  }

  show();
  loadUsers();
  return {
    element: h("span.user-picker", field(label, kind), uid, claims, list),
    user() {
      if (kind.value === "none") return null;
      if (!uid.value) throw new Error("Enter the user's ID, such as tina.");
      return { uid: uid.value, claims: claimsOf(claims.value) };
    },
  };
}
