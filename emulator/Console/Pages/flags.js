// Flags: the feature flags in `remoteConfig/template`, in the form of a Remote Config template.

import { firestore, readDocument } from "./api.js";
import { badge, button, card, h, poll, problemLine, replace, setText, showProblem,
  toPath } from "./dom.js";
import { counted } from "./format.js";
import { brief, longText } from "./long-text.js";

const pollMilliseconds = 2000;
const path = "remoteConfig/template";
/** The flags of Psst: `FeatureFlag` in its functions. */
const psstFlags = [
  "personal_trainer_enabled",
  "cms_workout_sync_enabled",
  "trainer_chat_enabled",
  "relationship_validation_enabled",
];
const percentExpression = /^\s*percent\s*<=\s*(\d{1,3}(?:\.\d+)?)\s*$/i;
/** The texts that Firebase's SDKs read as true. */
const truths = ["1", "true", "t", "yes", "y", "on"];
const parametersMax = 300;
const conditionsMax = 50;
const textMax = 100_000;

export async function render(root, segments, signal) {
  let stored = null;
  let fields = {};
  let changes = new Set();
  const notice = problemLine();
  const body = h("div");
  const save = button("Save", saveAll, { kind: "primary" });
  const revert = button("Revert", () => load(true));
  const status = h("span.quiet", { role: "status" });
  const bar = h("div.save-bar", save, revert, status);
  root.append(h("h1", "Flags"),
    h("p.quiet", "The feature flags in the document ",
      h("a", { href: toPath(path) }, h("code", path)),
      ". A change takes effect with the next call of a function, without a deployment."),
    notice, body, bar);

  let reads = 0;
  let shownRead = 0;

  /** Shows the stored flags; `isForced` drops the changes that are not saved. */
  async function load(isForced = false) {
    const number = reads += 1;
    const found = await readDocument(path, signal);
    // A slow response must not replace the response to a later request.
    if (number < shownRead) return;
    const isSame = shownRead > 0 && found?.updateTime === stored?.updateTime;
    if (!isForced && (changes.size || isSame)) return;
    if (isForced) showProblem(notice, null);
    shownRead = number;
    stored = found;
    fields = structuredClone(found?.fields ?? {});
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
    setText(status, changes.size
      ? `Not saved: ${[...changes].slice(0, 5).join(", ")}${changes.size > 5 ? " …" : ""}`
      : `Saved ${stored ? new Date(stored.updateTime).toLocaleString() : ""}`);
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
      showProblem(notice, new Error("Nothing was saved: the flags have been changed elsewhere "
        + "since this page read them. They are shown as they are now; make your change again."));
      return;
    } finally {
      body.inert = false;
    }
    await load(true);
  }

  async function create() {
    const template = {
      parameters: map(Object.fromEntries(psstFlags.map((name) => [name, newFlag()]))),
      conditions: { arrayValue: { values: [] } },
    };
    try {
      await firestore(path, "?currentDocument.exists=false",
        { method: "PATCH", body: { fields: template } });
    } catch (error) {
      // Another window may have created it meanwhile.
      if (error.code !== "ALREADY_EXISTS" && error.code !== "FAILED_PRECONDITION") throw error;
    }
    await load(true);
  }

  const missing = () => card("There is no template yet",
    h("p", "Without the document, every flag is off."),
    h("p", "A new template has the flags of Psst, all off:"),
    h("ul", psstFlags.map((name) => h("li", h("code", name)))),
    button("Create the template", create, { kind: "primary" }));

  // MARK: Showing

  function template() {
    const conditions = conditionsOf(fields);
    const all = parametersOf(fields);
    // The template of another app does not need Psst's flags.
    if (all.some(({ name }) => psstFlags.includes(name))) {
      for (const name of psstFlags) {
        if (all.some((one) => one.name === name)) continue;
        all.push({ name, raw: newFlag(), isMissing: true });
      }
    }
    const flags = all.filter(isBoolean);
    const others = all.filter((one) => !isBoolean(one));
    return [
      flags.length > 0 ? flags.map((one) => flagCard(one, conditions))
        : h("p.quiet", "The template has no boolean flag."),
      others.length > 0 && h("h2", "Other parameters"),
      others.slice(0, parametersMax).map(textCard),
      others.length > parametersMax && h("p.quiet", `${counted(others.length - parametersMax,
        "more parameter is", "more parameters are")} not shown.`),
    ];
  }

  /** Adds a flag of Psst that the template lacks, when a person changes the flag. */
  function add(one) {
    if (!one.isMissing) return;
    entriesOf(fields, "parameters")[one.name] = one.raw;
    one.isMissing = false;
  }

  function flagCard(one, conditions) {
    const { name, raw, group } = one;
    const values = entriesOf(raw, "conditionalValues", false);
    const found = conditions.find((condition) => condition.name === name);
    const own = found && Object.hasOwn(values, name) ? found : null;
    const percent = found ? percentOf(found.expression) : null;
    const canSlide = !found || percent !== null;
    const effect = h("p");
    const isOn = () => isTrue(entriesOf(raw, "defaultValue", false).value);

    const toggle = h("input", {
      type: "checkbox",
      role: "switch",
      checked: isOn(),
      "aria-label": `${name} by default`,
      onchange() {
        add(one);
        setValue(raw, "defaultValue", toggle.checked);
        explain();
        changed(name);
      },
    });
    const share = { min: 0, max: 100, disabled: !canSlide, value: own ? percent ?? 0 : 0,
      oninput: slide };
    const slider = h("input",
      { type: "range", step: 1, "aria-label": `${name}: percentage of users`, ...share });
    const number = h("input.percent",
      { type: "number", step: "any", "aria-label": `${name}: percentage of users as a number`,
        ...share });

    function slide(event) {
      const value = Number(event.target.value);
      if (event.target.value === "" || !(value >= 0 && value <= 100)) return;
      slider.value = number.value = value;
      add(one);
      // A flag that is on for everybody cannot be on for a part.
      if (toggle.checked) {
        toggle.checked = false;
        setValue(raw, "defaultValue", false);
      }
      setPercent(fields, raw, name, value);
      explain();
      changed(name);
    }

    function explain() {
      const now = conditionsOf(fields).find((condition) => condition.name === name);
      const conditional = entriesOf(raw, "conditionalValues", false);
      const value = conditional[name];
      const share = now && value ? percentOf(now.expression) : null;
      const others = Object.keys(conditional).some((other) => other !== name);
      const [base, opposite] = isOn() ? ["On", "Off"] : ["Off", "On"];
      let text = `${base} for everybody`;
      if (now && value && share === null) {
        text = `${base} unless the condition holds`;
      } else if (share !== null && share > 0 && conditionalIsTrue(value) !== isOn()) {
        text = share >= 100 ? `${opposite} for everybody, by the condition`
          : `${opposite} for ${share} % of the users, ${base.toLowerCase()} for the others`;
      }
      setText(effect, `${text}${others ? ", apart from the conditions below" : ""}.`);
    }

    explain();
    const isShared = (other) => other.name !== name
      && entriesOf(other.raw, "conditionalValues", false)[name];
    const sharing = found ? parametersOf(fields).filter(isShared).map((other) => other.name) : [];
    const others = Object.entries(values).filter(([other]) => other !== name || !canSlide);
    const description = fieldsOf(raw).description?.stringValue;
    return h("article.card.flag",
      h("h2", brief(name, 120), group && [" ", badge(group)],
        one.isMissing && [" ", badge("not in the template")]),
      description && longText(description, { tag: "p" }),
      h("div.controls",
        h("label.switch", toggle, h("span", "On by default")),
        h("span.share", h("span", "On for"), slider, number, h("span", "% of users"))),
      effect,
      found && !own && percent === null && h("p.quiet",
        "A condition with this name has the expression ",
        longText(found.expression, { tag: "code" }), ", which is left as it is."),
      conditionList(others, (other) => longText(
        conditions.find((condition) => condition.name === other)?.expression
          ?? "no such condition", { tag: "code" })),
      sharing.length > 0 && h("p.warn",
        `Other parameters use this condition, too: ${sharing.slice(0, 10).join(", ")}.`));
  }

  /** The values of conditions that this page does not edit, with what `expression` returns. */
  function conditionList(entries, expression = () => null) {
    return entries.length > 0 && h("ul.conditions",
      entries.slice(0, conditionsMax).map(([name, value]) => h("li",
        longText(plainText(fieldsOf(value).value), { tag: "b" }), " if ", h("b", brief(name)),
        expression(name) && [": ", expression(name)],
        h("span.quiet", " (read-only)"))));
  }

  function textCard(one) {
    const { name, raw, group } = one;
    const current = fieldsOf(fieldsOf(raw).defaultValue).value;
    const text = plainText(current);
    const isText = current?.stringValue !== undefined;
    const isLong = text.length > textMax;
    const isBlock = text.length > 80 || text.includes("\n");
    const input = h(isBlock ? "textarea.code" : "input.mono", {
      value: isLong ? text.slice(0, textMax) : text,
      readonly: isLong || !isText,
      "aria-label": `${name}: default value`,
      autocomplete: "off",
      spellcheck: "false",
      oninput() {
        entriesOf(raw, "defaultValue").value = { stringValue: input.value };
        changed(name);
      },
    });
    return h("article.card.flag",
      h("h3", brief(name, 120), group && [" ", badge(group)]), input,
      isLong && h("p.quiet",
        `${counted(text.length, "character")}, cut here; edit it in Firestore.`),
      !isLong && !isText && h("p.quiet", "Not a text: edit it in Firestore."),
      conditionList(Object.entries(entriesOf(raw, "conditionalValues", false))));
  }

  await poll(load, pollMilliseconds, signal, (error) => showProblem(notice, error));
}

// MARK: The template as Firestore's JSON

const map = (values) => ({ mapValue: { fields: values } });
const newFlag = () => map({
  defaultValue: map({ value: { stringValue: "false" } }),
  valueType: { stringValue: "BOOLEAN" },
});
const fieldsOf = (value) => value?.mapValue?.fields ?? {};

/**
 * The members of a map that is a member of `parent`, to be read or changed in place.
 *
 * `parent` is a map value, or the fields of the document. With `makes`, missing maps are added;
 * without it, a missing map counts as empty.
 */
function entriesOf(parent, name, makes = true) {
  if (!makes) return fieldsOf((parent.mapValue ? fieldsOf(parent) : parent)[name]);
  const own = parent.mapValue ? (parent.mapValue.fields ??= {}) : parent;
  if (!own[name]?.mapValue) own[name] = map({});
  return own[name].mapValue.fields ??= {};
}

function parametersOf(fields) {
  const list = (values, group) => Object.entries(values).filter(([, raw]) => raw.mapValue)
    .map(([name, raw]) => ({ name, raw, group }));
  const groups = Object.entries(entriesOf(fields, "parameterGroups", false));
  return [
    ...list(entriesOf(fields, "parameters", false), null),
    ...groups.flatMap(([group, raw]) => list(entriesOf(raw, "parameters", false), group)),
  ].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function conditionsOf(fields) {
  return (fields.conditions?.arrayValue?.values ?? []).map((raw) => ({
    raw,
    name: fieldsOf(raw).name?.stringValue ?? "",
    expression: fieldsOf(raw).expression?.stringValue ?? "",
  }));
}

const plainText = (value) => value === undefined ? ""
  : String(value.stringValue ?? value.booleanValue ?? value.integerValue ?? value.doubleValue
    ?? JSON.stringify(value));
const isTrue = (value) => truths.includes(plainText(value).toLowerCase());
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

/** Switches a value, which keeps its type: a text, as in Remote Config, or a boolean. */
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
    (fields.conditions.arrayValue.values ??= [])
      .push(map({ name: { stringValue: name }, expression }));
  }
  setValue(map(entriesOf(raw, "conditionalValues")), name, true);
}
