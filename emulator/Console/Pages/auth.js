// Auth: users, their claims and tokens, and the codes of e-mails and short messages.

import { auth, request, session } from "./api.js";
import { ask, attempt, badge, button, checkField, codeArea, debounced, errorIn, facts, field, h,
  poll, problemLine, setText, showProblem, to, toast, whenSubmitted } from "./dom.js";
import { backLink, detailPane, entryList, fillPane, parts } from "./entries.js";
import { count, counted, time } from "./format.js";
import { brief, copyButton, longText } from "./long-text.js";
import { claimsOf } from "./values.js";

const usersMilliseconds = 2000;
const codesMilliseconds = 1000;
const countMilliseconds = 5000;
const pageSize = 200;
const searchPageSize = 1000;
const foundMax = 200;

export async function render(root, segments, signal) {
  const isCodes = segments[0] === "codes";
  root.append(h("h1", "Auth"), parts("Auth", [
    ["users", "Users", to("auth")], ["codes", "Codes", to("auth", "codes")],
  ], isCodes ? "codes" : "users"));
  const body = h("div");
  root.append(body);
  return isCodes ? showCodes(body, signal) : showUsers(body, segments, signal);
}

const project = (suffix) => `/emulator/v1/projects/${session.project}${suffix}`;
const lookUp = async (criteria, signal) =>
  (await auth("/accounts:lookup", { body: criteria, signal })).users ?? [];
const fromMilliseconds = (text) => text && new Date(Number(text)).toISOString();

// MARK: Users

async function showUsers(root, segments, signal) {
  let chosen = segments[0] === "users" ? segments[1] ?? null : null;
  let users = [];
  let next = null;
  let wanted = "";
  let search = null;

  const summary = h("p.quiet", { role: "status" });
  const input = h("input", {
    type: "search",
    placeholder: "user ID, e-mail or name",
    oninput: debounced(() => {
      wanted = input.value.trim();
      attempt(find);
    }, 250),
  });
  const list = entryList({
    label: "Users",
    key: (user) => user.localId,
    state: (user) => JSON.stringify([user, user.localId === chosen]),
    entry,
    empty: () => wanted ? "No user matches." : "No users yet.",
  });
  const more = button("Load more users", loadMore, { hidden: true });
  const detail = detailPane(root, {
    label: "User",
    signal,
    show: (element, uid, signal) =>
      showUser(element, uid, signal, () => (wanted ? find() : load())),
  });

  function entry(user) {
    return h("li", h("a.entry.user",
      { href: to("auth", "users", user.localId), "aria-current": user.localId === chosen },
      h("b", brief(user.displayName || user.email || user.phoneNumber || "(no name)", 80)),
      h("span", brief(user.displayName ? user.email ?? user.phoneNumber : "", 80)),
      h("code.quiet", brief(user.localId, 60)),
      h("span", user.disabled && badge("disabled", "bad"),
        user.emailVerified && badge("verified", "good"),
        pretty(user.customAttributes) && badge("claims"))));
  }

  function page(size, after, signal) {
    const query = new URLSearchParams({ maxResults: size });
    if (after) query.set("nextPageToken", after);
    return auth(`/accounts:batchGet?${query}`, { signal });
  }

  let countedAt = 0;
  let total = 0;

  /** Reads the first page again; the users of later pages stay as they were loaded. */
  async function load() {
    if (wanted) return;
    const first = await page(pageSize, null, signal);
    if (wanted) return;
    const firstUsers = first.users ?? [];
    if (users.length <= pageSize || !first.nextPageToken) {
      [users, next] = [firstUsers, first.nextPageToken ?? null];
    } else {
      users = [...firstUsers, ...users.slice(pageSize)];
    }
    if (!next) {
      total = users.length;
    } else if (Date.now() - countedAt > countMilliseconds) {
      countedAt = Date.now();
      total = await countUsers();
    }
    show(counted(total, "user"));
  }

  async function countUsers() {
    const body = { returnUserInfo: false };
    return Number((await auth("/accounts:query", { body, signal })).recordsCount);
  }

  async function loadMore() {
    const found = await page(pageSize, next, signal);
    users = [...users, ...(found.users ?? [])];
    next = found.nextPageToken ?? null;
    await load();
  }

  function show(text) {
    list.show(users);
    more.hidden = !next || wanted !== "";
    setText(summary, text);
  }

  /** Looks up the exact ID or address first, then reads all users and searches for a part. */
  async function find() {
    search?.abort();
    list.reset();
    if (!wanted) {
      [users, next] = [[], null];
      return load();
    }
    search = new AbortController();
    const ends = AbortSignal.any([search.signal, signal]);
    const text = wanted.toLowerCase();
    const found = new Map();
    const criteria = [{ localId: [wanted] }];
    if (wanted.includes("@")) criteria.push({ email: [wanted] });
    if (wanted.startsWith("+")) criteria.push({ phoneNumber: [wanted] });
    for (const one of criteria) {
      for (const user of await lookUp(one, ends)) found.set(user.localId, user);
    }
    let searched = 0;
    let after = null;
    do {
      const part = await page(searchPageSize, after, ends);
      if (ends.aborted) return undefined;
      for (const user of part.users ?? []) {
        if ([user.localId, user.email, user.displayName, user.phoneNumber]
          .some((value) => value?.toLowerCase().includes(text))) found.set(user.localId, user);
      }
      searched += part.users?.length ?? 0;
      after = part.nextPageToken;
      users = [...found.values()].slice(0, foundMax);
      show(`${count(found.size)} found among ${counted(searched, "user")}${after ? " …" : ""}`);
    } while (after && found.size < foundMax);
    if (after) show(`The first ${count(users.length)} users found; more may match.`);
    return undefined;
  }

  async function create() {
    const uid = await ask(createDialog());
    if (!uid) return;
    wanted = input.value = "";
    await find();
    location.hash = to("auth", "users", uid);
  }

  root.className = "split";
  root.append(h("section.list",
    h("div.toolbar", field("Search", input),
      button("Create a user", create, { kind: "primary" })),
    summary, list.element, more), detail.element);
  detail.choose(chosen);
  await poll(load, usersMilliseconds, signal, errorIn(summary));
  return (moved) => {
    if (moved[0] === "codes") return false;
    chosen = moved[0] === "users" ? moved[1] ?? null : null;
    list.show(users);
    detail.choose(chosen);
    return true;
  };
}

// MARK: Creating a user

/** Claims as Auth stores them: JSON text, empty for none. */
const storedClaims = (text) => (text.trim() ? JSON.stringify(claimsOf(text)) : "");

function createDialog() {
  const input = (properties) => h("input", { autocomplete: "off", ...properties });
  const email = input({ type: "email" });
  const password = input({ type: "text" });
  const name = input();
  const uid = input();
  const claims = codeArea("", { placeholder: '{"admin": true}' });
  return {
    title: "Create a user",
    body: [
      field("E-mail", email),
      field("Password", password, "At least 6 characters."),
      field("Name", name),
      field("User ID", uid, "Chosen by the suite if empty."),
      field("Custom claims (JSON)", claims),
    ],
    action: "Create",
    async read() {
      const body = {};
      if (email.value) body.email = email.value.trim();
      if (password.value) body.password = password.value;
      if (name.value) body.displayName = name.value;
      if (uid.value) body.localId = uid.value.trim();
      if (claims.value.trim()) body.customAttributes = storedClaims(claims.value);
      const made = await auth("/accounts", { body });
      toast("The user is created.");
      return made.localId;
    },
  };
}

// MARK: One user

async function showUser(root, uid, signal, changed) {
  const [user] = await lookUp({ localId: [uid] }, signal);
  const back = backLink("All users", to("auth"));
  if (!user) {
    fillPane(root, back, h("h2", "No such user"),
      h("p", "There is no user ", h("code", brief(uid)), "."));
    return;
  }
  const name = h("input", { autocomplete: "off", value: user.displayName ?? "" });
  const email = h("input", { type: "email", autocomplete: "off", value: user.email ?? "" });
  const verified = h("input", { type: "checkbox", checked: user.emailVerified ?? false });
  const disabled = h("input", { type: "checkbox", checked: user.disabled ?? false });
  const claims = codeArea(pretty(user.customAttributes));
  const password = h("input", { type: "text", autocomplete: "off", placeholder: "unchanged" });

  function update() {
    const body = {};
    const removed = [];
    if (name.value !== (user.displayName ?? "")) {
      if (name.value) body.displayName = name.value;
      else removed.push("DISPLAY_NAME");
    }
    if (email.value.trim() !== (user.email ?? "")) {
      if (email.value.trim()) body.email = email.value.trim();
      else removed.push("EMAIL");
    }
    // A new address counts as not verified, unless the same request verifies it.
    if (verified.checked !== (user.emailVerified ?? false) || (body.email && verified.checked)) {
      body.emailVerified = verified.checked;
    }
    if (disabled.checked !== (user.disabled ?? false)) body.disableUser = disabled.checked;
    if (claims.value !== pretty(user.customAttributes)) {
      body.customAttributes = storedClaims(claims.value);
    }
    if (password.value) body.password = password.value;
    if (removed.length) body.deleteAttribute = removed;
    return body;
  }

  const again = async () => {
    await showUser(root, uid, signal, changed);
    await changed();
  };

  async function save() {
    const body = update();
    if (!Object.keys(body).length) {
      toast("Nothing has changed.");
      return;
    }
    await auth("/accounts:update", { body: { localId: uid, ...body } });
    toast("The user is saved.");
    await again();
  }

  const revoke = button("Revoke tokens", async () => {
    const validSince = String(Math.floor(Date.now() / 1000));
    await auth("/accounts:update", { body: { localId: uid, validSince } });
    toast("Refresh tokens from before now are no longer valid.");
    await again();
  });
  // Auth makes the token, so that it has all claims, addresses and providers of a sign-in.
  const token = copyButton("Copy an ID token", async () =>
    (await request("auth", project("/tokens"), { body: { localId: uid } })).idToken);
  const remove = button("Delete", async () => {
    const isDeleted = await ask({
      title: "Delete this user?",
      body: h("p", brief(user.email ?? user.displayName ?? uid),
        " is deleted; functions get the event."),
      action: "Delete",
      isDangerous: true,
      read: () => auth("/accounts:delete", { body: { localId: uid } }),
    });
    if (!isDeleted) return;
    toast("The user is deleted.");
    location.hash = to("auth");
    await changed();
  }, { kind: "danger" });

  const form = h("form", field("Name", name), field("E-mail", email),
    h("div.row", checkField("E-mail is verified", verified), checkField("Disabled", disabled)),
    field("Custom claims (JSON)", claims), field("New password", password),
    h("div.actions", h("button.primary", { type: "submit" }, "Save")));
  whenSubmitted(form, save);
  fillPane(root, back, h("h2", brief(user.displayName || user.email || uid, 80)),
    facts([
      ["User ID", longText(uid, { tag: "code" })],
      ["Phone", user.phoneNumber],
      ["Providers", (user.providerUserInfo ?? []).map((one) => one.providerId).join(", ")],
      ["Created", user.createdAt && time(fromMilliseconds(user.createdAt))],
      ["Last sign-in", user.lastLoginAt && time(fromMilliseconds(user.lastLoginAt))],
      ["Tokens valid since", user.validSince && time(fromMilliseconds(user.validSince * 1000))],
    ]),
    h("div.row", token, revoke, remove), form);
}

/** Stored claims as indented JSON; empty if there are none. */
function pretty(claims) {
  if (!claims || claims === "{}") return "";
  try {
    return JSON.stringify(JSON.parse(claims), null, 2);
  } catch {
    return claims;
  }
}

// MARK: Codes

const purposes = {
  PASSWORD_RESET: "reset the password",
  VERIFY_EMAIL: "verify the address",
  EMAIL_SIGNIN: "sign in",
  VERIFY_AND_CHANGE_EMAIL: "change the address",
  RECOVER_EMAIL: "recover the address",
};

function emailEntry(code) {
  const isLink = /^https?:/.test(code.oobLink ?? "");
  return h("li.entry.code",
    h("b", brief(code.email, 80), code.newEmail && [" → ", brief(code.newEmail, 80)]),
    h("span", purposes[code.requestType] ?? brief(code.requestType)),
    h("span.row", copyButton("Copy the link", code.oobLink),
      copyButton("Copy the code", code.oobCode),
      isLink && h("a", { href: code.oobLink, target: "_blank", rel: "noopener noreferrer" },
        "Open the link")),
    longText(code.oobLink, { tag: "code" }));
}

const messageEntry = (code) => h("li.entry.code",
  h("b", brief(code.phoneNumber, 40)),
  h("code.big", brief(code.code, 40)),
  h("span.row", copyButton("Copy the code", code.code)));

async function showCodes(root, signal) {
  const emails = entryList({
    label: "Codes of e-mails",
    key: (code) => code.oobCode,
    state: () => "",
    entry: emailEntry,
    empty: "No e-mail was sent since the start.",
  });
  const messages = entryList({
    label: "Codes of short messages",
    key: (code) => code.sessionInfo,
    state: () => "",
    entry: messageEntry,
    empty: "No short message was sent since the start.",
  });
  const problem = problemLine();
  root.append(
    h("p.quiet", "No message leaves the machine. The newest codes are first; used codes are gone."),
    problem, h("h2", "E-mails"), emails.element, h("h2", "Short messages"), messages.element);
  await poll(async () => {
    const [mail, phone] = await Promise.all([
      request("auth", project("/oobCodes"), { signal }),
      request("auth", project("/verificationCodes"), { signal }),
    ]);
    showProblem(problem, null);
    emails.show((mail.oobCodes ?? []).reverse());
    messages.show((phone.verificationCodes ?? []).reverse());
  }, codesMilliseconds, signal, (error) => showProblem(problem, error));
}
