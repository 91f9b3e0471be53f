// The decisions of the security rules, and reads that make one.

import { firestore, hub } from "./api.js";

/** The decisions that the suite keeps for this. */
export const decisionsMax = 200;

/** The last decisions, newest first. */
export const lastDecisions = (signal) =>
  hub(`/rules/decisions?limit=${decisionsMax}`, { signal });

/**
 * Reads a document, or with `isList` the first documents of a collection, as a user.
 *
 * The result has `found`, or the `error` of a refused or failed read, and the `decisions` of the
 * rules on it. There are none if no rules are loaded, or if others made 200 decisions meanwhile.
 */
export async function readAs(path, isList, as) {
  const key = (decision) => JSON.stringify(decision);
  const former = new Set((await lastDecisions()).map(key));
  const outcome = {};
  try {
    outcome.found = await firestore(path, isList ? "?pageSize=20" : "", { as });
  } catch (error) {
    if (error.code === "LOST") throw error;
    outcome.error = error;
  }
  const method = isList ? "list" : "get";
  outcome.decisions = (await lastDecisions()).filter((decision) =>
    decision.method === method && decision.path === path && !former.has(key(decision)));
  return outcome;
}

/** Said when a read has no decision. */
export const noDecision = "No rule was evaluated: no rules are loaded, the request failed before, "
  + `or ${decisionsMax} newer decisions took the place of this one.`;
