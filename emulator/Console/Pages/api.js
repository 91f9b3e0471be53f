// The suite's session, and requests to its services through the console's own port.

/** The suite: `project`, `services` by name, `version`, `token`; filled by `openSession`. */
export const session = {};

/** A refused or failed request; `code` is the status's name, such as `NOT_FOUND`. */
export class RequestError extends Error {
  constructor(message, status, code, details) {
    super(message);
    Object.assign(this, { status, code, details });
  }
}

/** Thrown when the suite does not respond at all. */
export class LostError extends RequestError {
  constructor() {
    super("The suite does not respond.", 0, "LOST");
  }
}

const tokenKey = "hearth-suite-token";

/** Asks for the session's token; `suiteToken` is needed on another machine only. */
export async function openSession(suiteToken = sessionStorage.getItem(tokenKey)) {
  const headers = suiteToken ? { Authorization: `Bearer ${suiteToken}` } : {};
  const response = await reach("/session", { headers });
  if (!response.ok) throw await errorOf(response);
  if (suiteToken) sessionStorage.setItem(tokenKey, suiteToken);
  const { token, suite } = await response.json();
  Object.assign(session, suite, { token });
  return session;
}

async function reach(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    document.dispatchEvent(new CustomEvent("suite-lost"));
    throw new LostError();
  }
}

async function errorOf(response) {
  const text = await response.text();
  try {
    let body = JSON.parse(text);
    if (Array.isArray(body)) body = body[0];
    const error = body.error ?? body;
    return new RequestError(error.message ?? text, response.status, error.status ?? "", error.details);
  } catch {
    return new RequestError(text || response.statusText, response.status, "");
  }
}

const base64 = (value) =>
  btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** An unsigned ID token of a user, as emulators accept it. */
export function idToken({ uid, claims = {} }) {
  const now = Math.floor(Date.now() / 1000);
  const payload = { sub: uid, user_id: uid, aud: session.project, iat: now, exp: now + 3600,
    firebase: { identities: {}, sign_in_provider: "custom" }, ...claims };
  return `${base64({ alg: "none", typ: "JWT" })}.${base64(payload)}.`;
}

/**
 * Sends a request to a service and returns the response.
 *
 * `as` is `"owner"` for the administrator (the default), null for nobody, or a user with `uid` and
 * `claims`. `body` is sent as JSON, `text` as it is, of the media type `type`. A token that has become stale, because the suite was started
 * anew, is renewed once.
 */
export async function send(service, path, { method, body, text, type, as = "owner", signal } = {}) {
  const options = () => ({
    method: method ?? (body === undefined ? "GET" : "POST"),
    signal,
    headers: {
      "X-Hearth-Console": session.token,
      ...(as && { Authorization: `Bearer ${as === "owner" ? "owner" : idToken(as)}` }),
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...(text !== undefined && type && { "Content-Type": type }),
    },
    body: body === undefined ? text : JSON.stringify(body),
  });
  const url = `/api/${service}${path}`;
  const token = session.token;
  let response = await reach(url, options());
  if (response.status === 401) {
    const error = await errorOf(response.clone());
    if (error.message.includes("console token")) {
      if (session.token === token) await openSession();
      response = await reach(url, options());
    }
  }
  return response;
}

/** Sends a request and returns the decoded JSON; throws `RequestError` for anything but success. */
export async function request(service, path, options) {
  const response = await send(service, path, options);
  if (!response.ok) throw await errorOf(response);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** The control API: `hub("/events?limit=5")`, `hub("/clock", { body: { advanceSeconds: 60 } })`. */
export const hub = (path, options) => request("hub", `/hearth/v1${path}`, options);

/** Lines of JSON, such as the log's. */
export async function hubLines(path, options) {
  const response = await send("hub", `/hearth/v1${path}`, options);
  if (!response.ok) throw await errorOf(response);
  return (await response.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** The project's resource name of a Firestore document or of the root of its documents. */
export const documentName = (path = "", database = "(default)") =>
  `projects/${session.project}/databases/${database}/documents${path && `/${path}`}`;

const encoded = (name) => name.split("/").map(encodeURIComponent).join("/");

/** Firestore's REST API below a document: `firestore("chats/c", ":runQuery", { body })`. */
export const firestore = (path, suffix = "", options) =>
  request("firestore", `/v1/${encoded(documentName(path))}${suffix}`, options);

/** Auth's REST API of the project: `auth("/accounts:query", { body: {} })`. */
export const auth = (path, options) =>
  request("auth", `/identitytoolkit.googleapis.com/v1/projects/${session.project}${path}`, options);

/** Calls a callable function and returns its result, or throws its error. */
export async function call(name, data, { as = null, region = "us-central1" } = {}) {
  const path = `/${session.project}/${region}/${encodeURIComponent(name)}`;
  return (await request("functions", path, { body: { data }, as })).result;
}
