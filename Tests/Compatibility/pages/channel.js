// The web's side of the WebChannel protocol, version 8: a stream of messages in both directions over
// plain requests. It is for tests: whatever is not as the protocol has it throws, and nothing but a
// back channel that has ended is asked for again.

/** An answer other than 200. */
export class Refusal extends Error {
  constructor(status, text) {
    super(`${status} ${text}`);
    this.status = status;
    this.text = text;
  }

  /** Whether the server knows no such session; clients look for these words. */
  get isOfLostSession() {
    return this.status === 400 && this.text.indexOf("Unknown SID") > 0;
  }
}

// How a page reads a back channel: as a stream of text that grows, or as a whole that has to end.
const ways = {
  async fetch(url, headers) {
    const reply = await ask(url, {headers});
    return reply.body.pipeThrough(new TextDecoderStream());
  },

  xhr(url, headers) {
    const request = new XMLHttpRequest();
    request.open("GET", url);
    request.withCredentials = true;
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    return new ReadableStream({
      start(stream) {
        let length = 0;
        request.onreadystatechange = () => {
          if (request.readyState < XMLHttpRequest.LOADING || request.status !== 200) return;
          const text = request.responseText;
          stream.enqueue(text.slice(length));
          length = text.length;
        };
        request.onload = () => {
          if (request.status === 200) stream.close();
          else stream.error(new Refusal(request.status, request.responseText));
        };
        request.onerror = () => stream.error(new TypeError("the browser shows no answer"));
        request.send();
      },
    });
  },

  async polling(url, headers) {
    const reply = await ask(url, {headers});
    return [await reply.text()];
  },
};

/** An answer of 200; with credentials, as a page has them that is served through a proxy. */
async function ask(url, options) {
  const reply = await fetch(url, {credentials: "include", ...options});
  if (reply.status !== 200) throw new Refusal(reply.status, await reply.text());
  return reply;
}

/** The arrays of chunks, each as soon as its chunk is whole; a length counts UTF-16 units. */
async function* arrays(texts) {
  let rest = "";
  for await (const text of texts) {
    rest += text;
    for (let end; (end = rest.indexOf("\n")) >= 0;) {
      const next = end + 1 + Number(rest.slice(0, end));
      if (rest.length < next) break;
      yield* JSON.parse(rest.slice(end + 1, next));
      rest = rest.slice(next);
    }
  }
  expect(rest === "", `a whole chunk, not ${rest}`);
}

function expect(isTrue, what) {
  if (!isTrue) throw new Error(`The protocol has ${what}`);
}

/** A session, which its first message opens. */
export class Channel {
  /** Null until the session is open. */
  session = null;
  /** How many back channels there have been. */
  backChannels = 0;
  #url;
  #way;
  #database;
  #headers;
  #listed;
  #request = 100 + Math.floor(Math.random() * 100_000);
  #waiting = [];
  #sent = 0;
  #posting = Promise.resolve();
  #last = 0;

  /**
   * A channel of a `method` at an address; `way` is fetch, xhr or polling.
   *
   * Headers are the requests' own if it `preflights`, else in the body of the first one, for which
   * browsers ask nobody.
   */
  constructor({address, way, database, headers, preflights}, method) {
    this.#url = `http://${address}/google.firestore.v1.Firestore/${method}/channel`;
    this.#way = way;
    this.#database = database;
    this.#headers = preflights ? headers : {};
    this.#listed = preflights ? {} : headers;
  }

  /** Sends a message; those that are sent while a request is under way share the next one. */
  send(message) {
    this.#waiting.push(JSON.stringify(message));
    this.#posting = this.#posting.then(() => this.#post());
  }

  /** The server's messages. */
  async *messages() {
    await this.#posting;
    while (true) {
      this.backChannels += 1;
      const url = this.#address({
        RID: "rpc", AID: this.#last, CI: this.#way === "polling" ? 1 : 0, TYPE: "xmlhttp"});
      for await (const [number, payload] of arrays(await ways[this.#way](url, this.#headers))) {
        expect(number === this.#last + 1, `an array ${this.#last + 1}, not ${number}`);
        this.#last = number;
        if (payload[0] === "noop") continue;
        if (payload[0] === "close") return;
        expect(payload.length === 1 && typeof payload[0] === "object", "one message an array");
        yield payload[0];
      }
    }
  }

  /** Ends the session as a page does that is being closed. */
  leave() {
    navigator.sendBeacon(this.#address({RID: this.#request++, TYPE: "terminate"}), "");
  }

  async #post() {
    const texts = this.#waiting.splice(0);
    if (texts.length === 0) return;
    const form = new URLSearchParams({count: texts.length, ofs: this.#sent});
    texts.forEach((text, index) => form.set(`req${index}___data__`, text));
    this.#sent += texts.length;
    await (this.session === null ? this.#open(form) : this.#forward(form));
  }

  async #open(form) {
    const headers = Object.entries(this.#listed).map(([name, value]) => `${name}:${value}\r\n`);
    if (headers.length > 0) form.set("headers", headers.join(""));
    const url = this.#address({CVER: 22, RID: this.#request++, database: this.#database});
    const text = await (await ask(url, {method: "POST", body: form, headers: this.#headers})).text();
    for await (const [number, [kind, session, , version]] of arrays([text])) {
      expect(number === 0 && kind === "c" && version === 8, `a handshake, not ${text}`);
      this.session = session;
    }
  }

  async #forward(form) {
    const acknowledged = this.#last;
    const url = this.#address({RID: this.#request++, AID: acknowledged});
    const reply = await ask(url, {method: "POST", body: form, headers: this.#headers});
    const [length, report] = (await reply.text()).split("\n");
    expect(Number(length) === report.length, `a length of ${report.length}, not ${length}`);
    const [isThere, last, held] = JSON.parse(report);
    const isReport = [0, 1].includes(isThere) && last >= acknowledged && held >= 0;
    expect(isReport, `no report ${report} after array ${acknowledged}`);
  }

  #address(query) {
    const noCache = Math.random().toString(36).slice(2);
    const session = this.session === null ? {} : {SID: this.session};
    return `${this.#url}?${new URLSearchParams({VER: 8, ...session, ...query, zx: noCache, t: 1})}`;
  }
}
