// The suite's session, and requests to its services through the console's own port.

/** The suite: `project`, `services` by name, `version`, `token`; filled by `openSession`. */
export const session = {};

/**
 * A request that was refused or has failed.
 *
 * `code` is the name of the status, such as `NOT_FOUND`, or `LOST` if the suite did not respond.
 */
class RequestError extends Error {
  constructor(message, status, code, details) {
    super(message);
    Object.assign(this, { status, code, details });
  }
}

const tokenKey = "hearth-suite-token";

/** Asks for the session's token; only on another machine, this needs the `suiteToken`. */
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
    throw new RequestError("The suite does not respond.", 0, "LOST");
  }
}

async function errorOf(response) {
  const text = await response.text();
  try {
    let body = JSON.parse(text);
    if (Array.isArray(body)) body = body[0];
    const { message = text, status = "", details } = body.error ?? body;
    return new RequestError(message, response.status, status, details);
  } catch {
    return new RequestError(text || response.statusText, response.status, "");
  }
}

/** A text's UTF-8 bytes in base64. */
export function base64(text) {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** An unsigned ID token of a user, as emulators accept it. */
function idToken({ uid, claims = {} }) {
  const now = Math.floor(Date.now() / 1000);
  const payload = { sub: uid, user_id: uid, aud: session.project, iat: now, exp: now + 3600,
    firebase: { identities: {}, sign_in_provider: "custom" }, ...claims };
  const part = (value) => base64(JSON.stringify(value))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return `${part({ alg: "none", typ: "JWT" })}.${part(payload)}.`;
}

/** JavaScript writes the negative zero as 0; as a text, Firestore takes it for what it is. */
const signedZero = (_, value) => (Object.is(value, -0) ? "-0" : value);

/**
 * Sends a request to a service and returns the response, whatever its status is.
 *
 * `as` is `"owner"` for the administrator (the default), null for nobody, or a user with `uid` and
 * `claims`. `body` is sent as JSON; `text` is sent as it is, with the media type `type`. If the
 * suite has restarted, the session is renewed and the request is sent once more.
 */
export async function send(service, path,
  { method, body, text, type, headers, as = "owner", signal } = {}) {
  const options = () => ({
    method: method ?? (body === undefined ? "GET" : "POST"),
    signal,
    headers: {
      "X-Hearth-Console": session.token,
      ...(as && { Authorization: `Bearer ${as === "owner" ? "owner" : idToken(as)}` }),
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...(text !== undefined && type && { "Content-Type": type }),
      ...headers,
    },
    body: body === undefined ? text : JSON.stringify(body, signedZero),
  });
  const url = `/api/${service}${path}`;
  const token = session.token;
  let response = await reach(url, options());
  if (response.status === 401) {
    const error = await errorOf(response.clone());
    if (error.message.includes("console token")) {
      if (session.token === token) {
        await openSession();
        document.dispatchEvent(new CustomEvent("suite-restarted"));
      }
      response = await reach(url, options());
    }
  }
  return response;
}

async function sendForText(service, path, options) {
  const response = await send(service, path, options);
  if (!response.ok) throw await errorOf(response);
  return response.text();
}

/** Sends a request and returns the decoded JSON; throws `RequestError` for anything but success. */
export async function request(service, path, options) {
  const text = await sendForText(service, path, options);
  return text ? JSON.parse(text) : null;
}

// MARK: Services

/** The region of functions and queues whose address does not name one. */
export const defaultRegion = "us-central1";

/** The control API: `hub("/events?limit=5")`, `hub("/clock", { body: { advanceSeconds: 60 } })`. */
export const hub = (path, options) => request("hub", `/hearth/v1${path}`, options);

/** The control API's responses that are lines of JSON, such as those of the log. */
export async function hubLines(path, options) {
  const text = await sendForText("hub", `/hearth/v1${path}`, options);
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** The resource name of a Firestore document; of the root of all documents, without a path. */
export const documentName = (path = "") =>
  `projects/${session.project}/databases/(default)/documents${path && `/${path}`}`;

const encoded = (name) => name.split("/").map(encodeURIComponent).join("/");

/** Firestore's REST API below a document: `firestore("chats/c", ":runQuery", { body })`. */
export const firestore = (path, suffix = "", options) =>
  request("firestore", `/v1/${encoded(documentName(path))}${suffix}`, options);

/** Reads a document; null if it is missing. */
export async function readDocument(path, signal) {
  // Browsers log each response with an error's status; a batch has none for a missing document.
  const [{ found = null }] = await firestore("", ":batchGet",
    { body: { documents: [documentName(path)] }, signal });
  return found;
}

/** Auth's REST API of the project: `auth("/accounts:query", { body: {} })`. */
export const auth = (path, options) =>
  request("auth", `/identitytoolkit.googleapis.com/v1/projects/${session.project}${path}`, options);

/** The task queue of a function: `queue("countTask", ":resume", { body: {} })`. */
export const queue = (name, suffix, options) => request("tasks",
  `/v2/projects/${session.project}/locations/${defaultRegion}/queues/${encodeURIComponent(name)}`
  + suffix, options);
