// Firestore's typed values, in the form of its REST API, as texts and as JSON, and back.

import { documentName } from "./api.js";

/** The types that a person can choose, with the REST name of each. */
export const types = {
  string: "stringValue", integer: "integerValue", double: "doubleValue", boolean: "booleanValue",
  timestamp: "timestampValue", map: "mapValue", array: "arrayValue", reference: "referenceValue",
  geopoint: "geoPointValue", bytes: "bytesValue", vector: "mapValue", null: "nullValue",
};

/** The type of a value, as `types` names it. */
export function typeOf(value) {
  if (value.mapValue?.fields?.__type__?.stringValue === "__vector__") return "vector";
  const member = Object.keys(value)[0];
  return Object.keys(types).find((type) => types[type] === member) ?? "null";
}

const pathPrefix = () => `${documentName()}/`;

/** The path of a document below the root, from its resource name. */
export const pathOf = (name) => name.slice(pathPrefix().length);

/** The members of a map or array with their names or indexes; null for other values. */
export function members(value) {
  if (typeOf(value) === "map") return Object.entries(value.mapValue.fields ?? {});
  if (typeOf(value) === "array") {
    return (value.arrayValue.values ?? []).map((element, index) => [index, element]);
  }
  return null;
}

/** A value as a text; of a map or array, only the number of members. Long texts are not cut. */
export function textOf(value) {
  switch (typeOf(value)) {
    case "string": return value.stringValue;
    case "integer": return value.integerValue;
    case "double": return numberText(value.doubleValue);
    case "boolean": return String(value.booleanValue);
    case "timestamp": return value.timestampValue;
    case "reference": return value.referenceValue.replace(pathPrefix(), "");
    case "geopoint": {
      const { latitude = 0, longitude = 0 } = value.geoPointValue;
      return `${numberText(latitude)}, ${numberText(longitude)}`;
    }
    case "bytes": return value.bytesValue;
    case "vector": return JSON.stringify(vectorNumbers(value).map(jsonNumber));
    case "map": return `{${members(value).length}}`;
    case "array": return `[${members(value).length}]`;
    default: return "null";
  }
}

/** A number as a text; JavaScript writes the negative zero without its sign. */
const numberText = (number) => (Object.is(number, -0) ? "-0" : String(number));

/** A number for JSON, which as a text keeps the negative zero. */
const jsonNumber = (number) => (Object.is(number, -0) ? "-0" : number);

const vectorNumbers = (value) =>
  (value.mapValue.fields.value.arrayValue.values ?? []).map((number) =>
    Number(number.doubleValue ?? number.integerValue));

/** A time as RFC 3339 writes it. */
const internetTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
/** The full name of a document of any database, and its path. */
const resourceName = /^projects\/[^/]+\/databases\/[^/]+\/documents\/(.+)$/;

/** The value of a type that a person has typed; the error says what is wrong with the text. */
export function parse(type, text) {
  switch (type) {
    case "string": return { stringValue: text };
    case "integer":
      if (!/^[-+]?\d+$/.test(text.trim())) throw new Error(`"${text}" is not an integer.`);
      return { integerValue: text.trim() };
    case "double": {
      const number = text.trim();
      if (["NaN", "Infinity", "-Infinity"].includes(number)) return { doubleValue: number };
      if (number === "" || Number.isNaN(Number(number))) {
        throw new Error(`"${text}" is not a number.`);
      }
      return { doubleValue: Number(number) };
    }
    case "boolean":
      if (!["true", "false"].includes(text.trim())) throw new Error("Enter true or false.");
      return { booleanValue: text.trim() === "true" };
    case "timestamp": {
      const time = text.trim();
      if (Number.isNaN(Date.parse(time))) {
        throw new Error(`"${text}" is not a time; write one such as 2026-11-27T09:00:00Z.`);
      }
      // JavaScript's dates would lose the microseconds.
      return { timestampValue: internetTime.test(time) ? time : new Date(time).toISOString() };
    }
    case "reference": {
      const name = text.trim().replace(/^\//, "");
      const path = resourceName.exec(name)?.[1] ?? name;
      if (path.split("/").length % 2) {
        throw new Error("A reference names a document, such as users/tina.");
      }
      return { referenceValue: path === name ? `${pathPrefix()}${path}` : name };
    }
    case "geopoint": {
      const [latitude, longitude, ...rest] = text.split(",").map(Number);
      if (rest.length || Number.isNaN(latitude) || !Number.isFinite(longitude)) {
        throw new Error("Write latitude and longitude, such as 52.52, 13.4.");
      }
      return { geoPointValue: { latitude, longitude } };
    }
    case "bytes": return { bytesValue: text.trim() };
    case "null": return { nullValue: null };
    case "vector": return fromJSON({ __vector__: documentJSON(text) });
    default: {
      const value = fromJSON(documentJSON(text));
      if (typeOf(value) !== type) {
        throw new Error(`This is not JSON of ${type === "map" ? "a map" : "an array"}.`);
      }
      return value;
    }
  }
}

/** Parses JSON that a person has typed; the error names it and says where it is malformed. */
export function json(text, subject = "This is") {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${subject} not JSON: ${error.message}`);
  }
}

/**
 * Parses the JSON of documents, with its numbers as they are written.
 *
 * Integers beyond those of JavaScript stay exact, and a number with a point or an exponent is a
 * double.
 */
export function documentJSON(text) {
  json(text);
  return JSON.parse(text, (_, value, context) => {
    // Browsers before 2025 do not tell the source.
    const source = context?.source;
    if (typeof value !== "number" || source === undefined) return value;
    if (!Number.isFinite(value)) throw new Error(`${source} is too large for a number.`);
    if (/^-?\d+$/.test(source)) {
      return Number.isSafeInteger(value) ? value : { __integer__: source };
    }
    return Number.isInteger(value) ? { __double__: numberText(value) } : value;
  });
}

/** Parses the claims of a user; an empty text stands for none. */
export function claimsOf(text) {
  if (!text.trim()) return {};
  const claims = json(text, "The claims are");
  if (!isObject(claims)) throw new Error('The claims must be an object, such as {"admin": true}.');
  return claims;
}

const isObject = (plain) =>
  plain !== null && typeof plain === "object" && !Array.isArray(plain);

/** How a person writes the types that JSON lacks. */
export const jsonHint =
  'Other types: {"__timestamp__": "2026-11-27T09:00:00Z"}, {"__reference__": "users/tina"}, '
  + '{"__geopoint__": [52.5, 13.4]}, {"__bytes__": "aGk="}, {"__vector__": [1, 0]}, '
  + '{"__double__": "NaN"}. 3 is an integer and 3.0 is a double.';

/** A value as plain JSON; `fromJSON` returns the same value. */
export function toJSON(value) {
  switch (typeOf(value)) {
    case "string": return value.stringValue;
    case "integer": {
      const number = Number(value.integerValue);
      return Number.isSafeInteger(number) ? number : { __integer__: value.integerValue };
    }
    case "double": {
      const number = value.doubleValue;
      const isPlain = typeof number === "number" && !Number.isInteger(number);
      return isPlain ? number : { __double__: jsonNumber(number) };
    }
    case "boolean": return value.booleanValue;
    case "timestamp": return { __timestamp__: value.timestampValue };
    case "reference": return { __reference__: textOf(value) };
    case "geopoint": {
      const { latitude = 0, longitude = 0 } = value.geoPointValue;
      return { __geopoint__: [jsonNumber(latitude), jsonNumber(longitude)] };
    }
    case "bytes": return { __bytes__: value.bytesValue };
    case "vector": return { __vector__: vectorNumbers(value).map(jsonNumber) };
    case "map": return fieldsToJSON(value.mapValue.fields ?? {});
    case "array": return (value.arrayValue.values ?? []).map(toJSON);
    default: return null;
  }
}

/** The fields of a document as plain JSON. */
export const fieldsToJSON = (fields) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, toJSON(value)]));

const markers = {
  __timestamp__: (text) => parse("timestamp", String(text)),
  __reference__: (path) => parse("reference", String(path)),
  __geopoint__: (numbers) => parse("geopoint", list(numbers).map(markedNumber).join(",")),
  __bytes__: (text) => ({ bytesValue: String(text) }),
  __integer__: (text) => parse("integer", String(text)),
  __double__: (number) => parse("double", markedNumber(number)),
  __vector__: (numbers) => ({ mapValue: { fields: {
    __type__: { stringValue: "__vector__" },
    value: { arrayValue: {
      values: list(numbers).map((number) => parse("double", markedNumber(number))),
    } },
  } } }),
};

function list(plain) {
  if (!Array.isArray(plain)) throw new Error("A vector or a place is an array of numbers.");
  return plain;
}

/** The text of a number within a marker, which may itself have one. */
const markedNumber = (plain) =>
  (isObject(plain) ? String(Object.values(plain)[0]) : typeof plain === "number"
    ? numberText(plain) : String(plain));

/** The value of plain JSON. */
export function fromJSON(plain) {
  if (plain === null) return { nullValue: null };
  switch (typeof plain) {
    case "string": return { stringValue: plain };
    case "boolean": return { booleanValue: plain };
    case "number":
      return Number.isSafeInteger(plain) ? { integerValue: String(plain) } : { doubleValue: plain };
    default:
  }
  if (Array.isArray(plain)) return { arrayValue: { values: plain.map(fromJSON) } };
  const names = Object.keys(plain);
  const [name] = names;
  if (names.length === 1 && Object.hasOwn(markers, name)) return markers[name](plain[name]);
  return { mapValue: { fields: fieldsFromJSON(plain) } };
}

/** The fields of a document of plain JSON; throws unless it is an object. */
export function fieldsFromJSON(plain) {
  if (!isObject(plain)) {
    throw new Error('A document is a JSON object, such as {"name": "Tina"}.');
  }
  return Object.fromEntries(Object.entries(plain).map(([name, value]) => [name, fromJSON(value)]));
}

/** A field's name as a part of a field path, in backticks if it needs them. */
export const fieldPath = (name) => /^[A-Za-z_]\w*$/.test(name) ? name
  : `\`${name.replaceAll("\\", "\\\\").replaceAll("`", "\\`")}\``;

// MARK: Queries

const operators = {
  "==": ["EQUAL", "isEqualTo"], "!=": ["NOT_EQUAL", "isNotEqualTo"],
  "<": ["LESS_THAN", "isLessThan"], "<=": ["LESS_THAN_OR_EQUAL", "isLessThanOrEqualTo"],
  ">": ["GREATER_THAN", "isGreaterThan"],
  ">=": ["GREATER_THAN_OR_EQUAL", "isGreaterThanOrEqualTo"],
  "array-contains": ["ARRAY_CONTAINS", "arrayContains"],
  "array-contains-any": ["ARRAY_CONTAINS_ANY", "arrayContainsAny"],
  "in": ["IN", "in"], "not-in": ["NOT_IN", "notIn"],
};

/** The operators of filters, as JavaScript's SDK writes them. */
export const operatorNames = Object.keys(operators);

/**
 * The query of a collection in the form of the REST API.
 *
 * `filters` have a field, an operator and a value, `order` has a field and a direction; with
 * `isGroup`, the query covers all collections with the ID.
 */
export function structuredQuery(collectionID, { filters = [], order, isGroup = false }) {
  const tests = filters.map(({ field, operator, value }) => ({ fieldFilter: {
    field: { fieldPath: field }, op: operators[operator][0],
    value: field === "__name__" && value.stringValue !== undefined
      ? parse("reference", value.stringValue) : value,
  } }));
  return {
    from: [{ collectionId: collectionID, ...(isGroup && { allDescendants: true }) }],
    ...(tests.length === 1 && { where: tests[0] }),
    ...(tests.length > 1 && { where: { compositeFilter: { op: "AND", filters: tests } } }),
    ...(order && { orderBy: [{ field: { fieldPath: order.field }, direction: order.direction }] }),
  };
}

const quoted = (text) => JSON.stringify(text);

function literal(value, language) {
  switch (typeOf(value)) {
    case "string": case "integer": case "boolean": case "double": {
      const plain = toJSON(value);
      return quoted(plain?.__double__ ?? plain?.__integer__ ?? plain);
    }
    case "timestamp":
      return language === "swift"
        ? `ISO8601DateFormatter().date(from: ${quoted(value.timestampValue)})!`
        : `new Date(${quoted(value.timestampValue)})`;
    case "reference": {
      const path = quoted(textOf(value));
      return language === "swift" ? `db.document(${path})` : `doc(db, ${path})`;
    }
    case "array":
      return `[${members(value).map(([, element]) => literal(element, language)).join(", ")}]`;
    default: return language === "swift" ? "NSNull()" : quoted(toJSON(value));
  }
}

/** A query as Swift for Firebase's SDK. */
export function swiftCode(path, { filters = [], order, isGroup = false }) {
  const id = path.split("/").pop();
  const lines = [isGroup ? `db.collectionGroup(${quoted(id)})` : `db.collection(${quoted(path)})`];
  for (const { field, operator, value } of filters) {
    const argument = `${operators[operator][1]}: ${literal(value, "swift")}`;
    lines.push(`  .whereField(${quoted(field)}, ${argument})`);
  }
  if (order) {
    const descending = order.direction === "DESCENDING" ? ", descending: true" : "";
    lines.push(`  .order(by: ${quoted(order.field)}${descending})`);
  }
  return lines.join("\n");
}

/** A query as JavaScript for Firebase's SDK. */
export function javaScriptCode(path, { filters = [], order, isGroup = false }) {
  const id = path.split("/").pop();
  const source = isGroup ? `collectionGroup(db, ${quoted(id)})`
    : `collection(db, ${quoted(path)})`;
  const parts = filters.map(({ field, operator, value }) =>
    `where(${quoted(field)}, ${quoted(operator)}, ${literal(value, "javascript")})`);
  if (order) {
    const descending = order.direction === "DESCENDING" ? ', "desc"' : "";
    parts.push(`orderBy(${quoted(order.field)}${descending})`);
  }
  return parts.length ? `query(${[source, ...parts].join(",\n  ")})` : source;
}
