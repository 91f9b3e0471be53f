// Flags: the feature flags in `remoteConfig/template`, in the form of a Remote Config template.

import { documentName, firestore } from "./api.js";
import { button, count, h, poll, replace, to } from "./dom.js";
import { badge, brief } from "./entries.js";
import { longText } from "./long-text.js";

const path = "remoteConfig/template";
/** The flags of Psst: `FeatureFlag` in its functions. */
const psstFlags = ["personal_trainer_enabled", "cms_workout_sync_enabled", "trainer_chat_enabled",
  "relationship_validation_enabled"];
const percentExpression = /^\s*percent\s*<=\s*(\d{1,3}(?:\.\d+)?)\s*$/i;
/** The texts that Firebase's SDKs read as true. */
const truths = ["1", "true", "t", "yes", "y", "on"];

export async function render(root, _segments, signal) {
  let stored = null;
  let fields = {};
  let changes = new Set();
  const notice = h("p.problem", { role: "alert", hidden: true });
  const body = h("div.flags");
  const save = button("Save", saveAll, { kind: "primary" });
  const revert = button("Revert", () => load(true));
  const status = h("span.quiet", { role: "status" });
  const bar = h("div.save-bar", save, revert, status);
  root.append(h("h1", "Flags"), h("p.quiet", "The feature flags in the document ",
    h("a", { href: to("firestore", ...path.split("/")) }, h("code", path)),
    ". A change counts from the next call of a function on, without a deployment."), notice, body,
      bar);

  const copy = (value) => JSON.parse(JSON.stringify(value));

  /** The document, or null. A batch has no error for a missing document, which browsers would log. */
  async function read() {
    const [{ found = null }] = await firestore("", ":batchGet",
      { body: { documents: [documentName(path)] }, signal });
    return found;
  }

  let reads = 0;
  let shownRead = 0;

  /** Shows the stored flags; changes that are not saved are kept unless `isForced`. */
  async function load(isForced = false) {
    const number = reads += 1;
    const found = await read();
    // A slow response must not replace that of a later request.
    if (number < shownRead) return;
    const isSame = shownRead > 0 && found?.updateTime === stored?.updateTime;
    if (!isForced && (changes.size || isSame)) return;
    if (isForced) notice.hidden = true;
    shownRead = number;
    stored = found;
    fields = copy(found?.fields ?? {});
    changes = new Set();
    show();
  }

  function show() {
    bar.hidden = !stored;
    replace(body, stored ? template() : missing());
    showStatus();
  }

  function showStatus() {
    save.disabled = revert.disabled = changes.size === 0;
    const words = changes.size
      ? `Not saved: ${[...changes].slice(0, 5).join(", ")}${changes.size > 5 ? " …" : ""}`
      : `Saved ${stored ? new Date(stored.updateTime).toLocaleString() : ""}`;
    if (status.textContent !== words) status.textContent = words;
  }

  function changed(name) {
    changes.add(name);
    showStatus();
  }

  // MARK: Saving

  async function saveAll() {
    const condition = `currentDocument.updateTime=${encodeURIComponent(stored.updateTime)}`;
    body.inert = true;
    try {
      await firestore(path, `?${condition}`, { method: "PATCH", body: { fields } });
    } catch (error) {
      if (error.code !== "FAILED_PRECONDITION" && error.code !== "NOT_FOUND") throw error;
      await load(true);
      notice.hidden = false;
      notice.textContent = "Nothing was saved: the flags have been changed elsewhere since this page read them. "
        + "They are shown as they are now; make your change again.";
      return;
    } finally {
      body.inert = false;
    }
    await load(true);
  }

  async function create() {
    const parameters = Object.fromEntries(psstFlags.map((name) => [name, newFlag()]));
    try {
      await firestore(path, "?currentDocument.exists=false", { method: "PATCH",
        body: { fields: { parameters: map(parameters),
          conditions: { arrayValue: { values: [] } } } } });
    } catch (error) {
      if (error.code !== "ALREADY_EXISTS" && error.code !== "FAILED_PRECONDITION") throw error;
    }
    await load(true);
  }

  const missing = () => h("div.card", h("h2", "There is no template yet"),
    h("p", "Without the document, every flag is off."),
    h("p", "A new template has the flags of Psst, all off:"),
    h("ul", psstFlags.map((name) => h("li", h("code", name)))),
    button("Create the template", create, { kind: "primary" }));

  // MARK: Showing

  function template() {
    const conditions = conditionsOf(fields);
    const all = parametersOf(fields);
    // Someone else's template does not need Psst's flags.
    if (all.some(({ name }) => psstFlags.includes(name))) {
      for (const name of psstFlags) {
        if (!all.some((one) => one.name === name)) all.push({ name, raw: newFlag(),
          isMissing: true });
      }
    }
    const flags = all.filter(isBoolean);
    const others = all.filter((one) => !isBoolean(one));
    return [
      flags.length > 0 ? flags.map((one) => flagCard(one, conditions)) : h("p.quiet",
        "The template has no boolean flag."),
      others.length > 0 && [h("h2", "Other parameters"),
        others.slice(0, parametersMax).map(textCard)],
      others.length > parametersMax && h("p.quiet",
        `${count(others.length - parametersMax)} more parameters are not shown.`),
    ];
  }

  /** Adds a flag of Psst that the template lacks, before its first change. */
  function add(one) {
    if (!one.isMissing) return;
    entriesOf(fields, "parameters")[one.name] = one.raw;
    one.isMissing = false;
  }

  function flagCard(one, conditions) {
    const { name, raw, group } = one;
    const values = entriesOf(raw, "conditionalValues", false);
    const found = conditions.find((condition) => condition.name === name);
    const own = found && values[name] ? found : null;
    const percent = found ? percentOf(found.expression) : null;
    const canSlide = !found || percent !== null;
    const effect = h("p.effect");
    const isOn = () => isTrue(entriesOf(raw, "defaultValue", false).value);

    const toggle = h("input", { type: "checkbox", role: "switch", checked: isOn(),
      "aria-label": `${name} by default`, onchange() {
        add(one);
        setValue(raw, "defaultValue", toggle.checked);
        explain();
        changed(name);
      } });
    const slider = h("input", { type: "range", min: 0, max: 100, step: 1, disabled: !canSlide,
      "aria-label": `${name}: percentage of users`, value: own ? percent ?? 0 : 0,
        oninput: slide });
    const number = h("input.percent", { type: "number", min: 0, max: 100, step: "any",
      disabled: !canSlide,
      "aria-label": `${name}: percentage of users as a number`, value: own ? percent ?? 0 : 0,
        oninput: slide });

    function slide(event) {
      const value = Number(event.target.value);
      if (event.target.value === "" || !(value >= 0 && value <= 100)) return;
      slider.value = number.value = value;
      add(one);
      setPercent(fields, raw, name, value);
      explain();
      changed(name);
    }

    function explain() {
      const now = conditionsOf(fields).find((condition) => condition.name === name);
      const value = entriesOf(raw, "conditionalValues", false)[name];
      const share = now && value ? percentOf(now.expression) : null;
      const base = isOn() ? "on" : "off";
      const others = Object.keys(entriesOf(raw, "conditionalValues", false)).some((other) =>
        other !== name);
      let words = `${isOn() ? "On" : "Off"} for everybody`;
      if (now && value && share === null) words = `${isOn() ? "On" : "Off"} unless the condition holds`;
      else if (share !== null && share > 0 && conditionalIsTrue(value) !== isOn()) {
        words = share >= 100 ? `${isOn() ? "Off" : "On"} for everybody, by the condition`
          : `${isOn() ? "Off" : "On"} for ${share} % of the users, ${base} for the others`;
      }
      effect.textContent = `${words}${others ? ", apart from the conditions below" : ""}.`;
    }

    explain();
    const shared = conditionsOf(fields).length && parametersOf(fields).filter((other) =>
      other.name !== name
      && entriesOf(other.raw, "conditionalValues", false)[name]).map((other) => other.name);
    const others = Object.entries(values).filter(([other]) => other !== name || !canSlide);
    const description = entriesOf({ mapValue: raw.mapValue }, null, false).description?.stringValue;
    return h("article.card.flag", h("h2", brief(name, 120), group && [" ", badge(group)],
      one.isMissing && [" ", badge("not in the template")]),
    description && longText(description, { tag: "p" }),
    h("div.controls",
      h("label.switch", toggle, h("span", "On by default")),
      h("span.share", h("span", "On for"), slider, number, h("span", "% of users"))),
    effect,
    found && !own && percent === null && h("p.quiet",
      "A condition with this name has the expression ",
      longText(found.expression, { tag: "code" }), ", which is left as it is."),
    others.length > 0 && h("ul.conditions", others.slice(0, 50).map(([other, value]) => h("li",
      h("b", textOf(fieldsOf(value).value)), " if ", h("b", brief(other)), ": ",
      longText(conditions.find((condition) => condition.name === other)?.expression
        ?? "no such condition", { tag: "code" }),
      h("span.quiet", " (read-only)")))),
    shared?.length > 0 && h("p.warn",
      `Other parameters use this condition, too: ${shared.slice(0, 10).join(", ")}.`));
  }

  function textCard(one) {
    const { name, raw, group } = one;
    const current = fieldsOf(fieldsOf(raw).defaultValue).value;
    const text = textOf(current);
    const isLong = text.length > textMax;
    const input = h(text.length > 80 || text.includes("\n") ? "textarea.code" : "input.mono", {
      value: isLong ? text.slice(0, textMax) : text, readonly: isLong || !current
        || current.stringValue === undefined,
      "aria-label": `${name}: default value`, autocomplete: "off", spellcheck: "false", oninput() {
        entriesOf(raw, "defaultValue").value = { stringValue: input.value };
        changed(name);
      } });
    const conditional = Object.entries(entriesOf(raw, "conditionalValues", false));
    return h("article.card.flag", h("h3", brief(name, 120), group && [" ", badge(group)]), input,
      isLong && h("p.quiet", `${count(text.length)} characters, cut here; edit it in Firestore.`),
      !isLong && (!current || current.stringValue === undefined) && h("p.quiet",
        "Not a text: edit it in Firestore."),
      conditional.length > 0 && h("ul.conditions", conditional.slice(0, 50).map(([other, value]) => h("li",
        longText(textOf(fieldsOf(value).value), { tag: "code" }), " if ", h("b", brief(other)),
          h("span.quiet", " (read-only)")))));
  }

  await poll(load, 2000, signal, (error) => {
    notice.hidden = false;
    notice.textContent = error.message;
  });
}

// MARK: - The template in Firestore's JSON

const parametersMax = 300;
const textMax = 100_000;

const map = (values) => ({ mapValue: { fields: values } });
const newFlag = () => map({ defaultValue: map({ value: { stringValue: "false" } }),
  valueType: { stringValue: "BOOLEAN" } });
const fieldsOf = (value) => value?.mapValue?.fields ?? {};

/**
 * The fields of a map within a map, as they are stored, so that they can be changed.
 *
 * `parent` is a map value, or the fields of the document. Without `makes`, a missing map is empty.
 */
function entriesOf(parent, name, makes = true) {
  const own = parent.mapValue ? (makes ? (parent.mapValue.fields ??= {}) : parent.mapValue.fields
    ?? {}) : parent;
  if (name === null) return own;
  if (!own[name]?.mapValue) {
    if (!makes) return {};
    own[name] = map({});
  }
  return makes ? (own[name].mapValue.fields ??= {}) : own[name].mapValue.fields ?? {};
}

function parametersOf(fields) {
  const list = (values, group) => Object.entries(values).filter(([, raw]) => raw.mapValue)
    .map(([name, raw]) => ({ name, raw, group }));
  const groups = Object.entries(entriesOf(fields, "parameterGroups", false)).flatMap(([group, raw]) =>
    list(entriesOf(raw, "parameters", false), group));
  return [...list(entriesOf(fields, "parameters", false), null), ...groups]
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function conditionsOf(fields) {
  return (fields.conditions?.arrayValue?.values ?? []).map((raw) => ({
    raw, name: fieldsOf(raw).name?.stringValue ?? "",
      expression: fieldsOf(raw).expression?.stringValue ?? "",
  }));
}

const textOf = (value) => value === undefined ? ""
  : String(value.stringValue ?? value.booleanValue ?? value.integerValue ?? value.doubleValue
    ?? JSON.stringify(value));
const isTrue = (value) => truths.includes(textOf(value).toLowerCase());
const conditionalIsTrue = (value) => isTrue(fieldsOf(value).value);

function isBoolean({ name, raw }) {
  const type = fieldsOf(raw).valueType?.stringValue;
  if (type) return type === "BOOLEAN";
  const value = fieldsOf(fieldsOf(raw).defaultValue).value;
  return psstFlags.includes(name) || value?.booleanValue !== undefined
    || ["true", "false"].includes(value?.stringValue?.toLowerCase());
}

/** The percentage of a condition; null for another expression. */
function percentOf(expression) {
  const percent = Number(expression.match(percentExpression)?.[1] ?? NaN);
  return percent >= 0 && percent <= 100 ? percent : null;
}

/** A value keeps its type: a text, as Remote Config has it, or a Boolean. */
function setValue(raw, member, isOn) {
  const values = entriesOf(raw, member);
  values.value = values.value?.booleanValue !== undefined ? { booleanValue: isOn }
    : { stringValue: String(isOn) };
  delete values.useInAppDefault;
}

/** Sets the share of users for whom a flag is on, by the condition with the flag's name. */
function setPercent(fields, raw, name, percent) {
  const found = conditionsOf(fields).find((condition) => condition.name === name);
  const expression = { stringValue: `percent <= ${percent}` };
  if (found) {
    found.raw.mapValue.fields.expression = expression;
  } else {
    if (!fields.conditions?.arrayValue) fields.conditions = { arrayValue: {} };
    (fields.conditions.arrayValue.values ??= []).push(map({ name: { stringValue: name },
      expression }));
  }
  const conditional = entriesOf(raw, "conditionalValues");
  if (!conditional[name]?.mapValue) conditional[name] = map({});
  setValue(entriesMap(conditional), name, true);
}

const entriesMap = (fields) => ({ mapValue: { fields } });
