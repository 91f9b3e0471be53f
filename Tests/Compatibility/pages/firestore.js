// What a page says and believes over Firestore's streams, as far as the scenes need it.

import {Channel} from "./channel.js";

const targetId = 2;
// The doubles that JSON's numbers lack, and the one that some writers of JSON lose.
const doublesAsText = new Set(["NaN", "Infinity", "-Infinity", "-0"]);

/** A listener to a collection, which goes on where its last session has left it. */
export class Listener {
  /** The documents' values, by their ids. */
  documents = {};
  #options;
  #channel;
  #resumeToken;

  constructor(options) {
    this.#options = options;
  }

  /** What the listener has once it is current, and after each change; over a session of its own. */
  async *snapshots() {
    const {database, collection} = this.#options;
    this.#channel = new Channel(this.#options, "Listen");
    this.#channel.send({database, addTarget: {
      targetId,
      query: {
        parent: `${database}/documents`,
        structuredQuery: {from: [{collectionId: collection}]},
      },
      ...(this.#resumeToken && {resumeToken: this.#resumeToken}),
    }});
    let told = [];
    let isCurrent = false;
    let isNew = true;
    for await (const message of this.#channel.messages()) {
      const {targetChange, documentChange} = message;
      if (documentChange) {
        const {name, fields} = documentChange.document;
        const id = name.split("/").pop();
        this.documents[id] = decode(fields);
        told.push(id);
        continue;
      }
      if (!targetChange || targetChange.cause) throw new Error(JSON.stringify(message));
      if (targetChange.targetChangeType === "RESET") this.documents = {};
      if (targetChange.targetChangeType === "CURRENT") isCurrent = true;
      if (targetChange.resumeToken) this.#resumeToken = targetChange.resumeToken;
      // Without targets it is of all of them: a moment at which everything belongs together.
      const isSnapshot = !targetChange.targetIds && targetChange.readTime;
      if (!isSnapshot || !isCurrent || !(isNew || told.length > 0)) continue;
      const {session, backChannels} = this.#channel;
      yield {session, backChannel: backChannels, told, documents: this.documents};
      told = [];
      isNew = false;
    }
  }
}

/** A stream of writes. */
export class Writer {
  /** The answer to the handshake. */
  handshake = null;
  #database;
  #channel;
  #messages;
  #token;

  constructor(options) {
    this.#database = options.database;
    this.#channel = new Channel(options, "Write");
    this.#messages = this.#channel.messages();
  }

  /** Shakes hands. */
  async open() {
    this.#channel.send({database: this.#database});
    this.handshake = await this.#next();
  }

  /** Sends several commits at once and returns their answers, in order. */
  async commit(...commits) {
    for (const writes of commits) this.#channel.send({streamToken: this.#token, writes});
    const answers = [];
    for (const _ of commits) answers.push(await this.#next());
    return answers;
  }

  /** Ends the session; throws what a request gets that finds it gone. */
  async leave() {
    const end = this.#messages.next();
    this.#channel.leave();
    await end;
  }

  async #next() {
    const {value, done} = await this.#messages.next();
    if (done || !value.streamToken) throw new Error(`No answer to a write: ${JSON.stringify(value)}`);
    this.#token = value.streamToken;
    return value;
  }
}

/** A write of a document that has these values. */
export function set({database, collection}, id, values) {
  return {update: {name: `${database}/documents/${collection}/${id}`, fields: encode(values)}};
}

/** A write that adds one to a document's number. */
export function increment({database, collection}, id, fieldPath) {
  return {transform: {
    document: `${database}/documents/${collection}/${id}`,
    fieldTransforms: [{fieldPath, increment: {integerValue: "1"}}],
  }};
}

function decode(fields = {}) {
  return mapped(fields, (value) => {
    const [[kind, content]] = Object.entries(value);
    const isText = typeof content === "string";
    if (kind === "stringValue" && isText) return content;
    if (kind === "integerValue" && isText) return Number(content);
    if (kind === "doubleValue" && (typeof content === "number" || doublesAsText.has(content))) {
      return Number(content);
    }
    throw new Error(`No value as the protocol writes it: ${JSON.stringify(value)}`);
  });
}

/** Fields as the web's SDK writes them. */
function encode(values) {
  return mapped(values, (value) => {
    if (typeof value === "string") return {stringValue: value};
    if (Object.is(value, -0)) return {doubleValue: "-0"};
    if (Number.isInteger(value)) return {integerValue: String(value)};
    return {doubleValue: Number.isFinite(value) ? value : String(value)};
  });
}

function mapped(object, change) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}
