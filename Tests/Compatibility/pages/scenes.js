// What a page does in a test. The test tells it which scene to play, and hears what it sees.

import {Refusal} from "./channel.js";
import {increment, Listener, set, Writer} from "./firestore.js";

const scenes = {
  /** Listens at each address at once; goes on with a new session when one is lost. */
  async listen(settings) {
    await Promise.all(settings.addresses.map(async (address) => {
      const listener = new Listener({...settings, address});
      while (true) {
        const error = await follow(listener, address).catch((error) => error);
        if (!(error instanceof Refusal && error.isOfLostSession)) throw error;
        await report("lost session", {address, status: error.status});
        await fetch("permission");
      }
    }));
  },

  /** Writes three lines at once and then a fourth, counts each, and leaves. */
  async write(settings) {
    const writer = new Writer({...settings, address: settings.addresses[0]});
    const line = (number) =>
      [set(settings, `line-${number}`, {text: `ü🙂 & ${number}`}), increment(settings, "sum", "lines")];
    await writer.open();
    const answers = await writer.commit(line(1), line(2), line(3));
    answers.push(...await writer.commit(line(4)));
    await report("written", {handshake: writer.handshake, answers});
    const error = await writer.leave().catch((error) => error);
    if (!(error instanceof Refusal)) throw error ?? new Error("The server has kept the session");
    await report("left", {status: error.status, isOfLostSession: error.isOfLostSession});
  },

  /** Waits for the document `numbers`, and writes the values that it sees in it as `copy`. */
  async copy(settings) {
    const options = {...settings, address: settings.addresses[0]};
    for await (const {documents: {numbers}} of new Listener(options).snapshots()) {
      if (!numbers) continue;
      const {negativeZero, zero, nan, infinity, negativeInfinity} = numbers;
      const writer = new Writer(options);
      await writer.open();
      await writer.commit([set(settings, "copy", numbers)]);
      // JSON would lose what this is about.
      await report("copied", {
        negativeZero: Object.is(negativeZero, -0),
        zero: Object.is(zero, 0),
        nan: Number.isNaN(nan),
        infinity: infinity === Infinity,
        negativeInfinity: negativeInfinity === -Infinity,
      });
      return;
    }
  },
};

async function follow(listener, address) {
  for await (const snapshot of listener.snapshots()) {
    await report("snapshot", {address, ...snapshot});
  }
  throw new Error("The server has closed a listener's session");
}

async function report(event, facts) {
  await fetch("reports", {method: "POST", body: JSON.stringify({event, ...facts})});
}

function fail(error) {
  return report("error", {error: error.stack});
}

addEventListener("unhandledrejection", ({reason}) => fail(reason));
const settings = await (await fetch("settings")).json();
await scenes[settings.scene](settings).catch(fail);
