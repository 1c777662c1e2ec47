// The policy form. Every change is tried on the package at once; what it will not take is said beside the field, and the circuit stays as it was.

import { el, find, say } from "./dom.js";
import { FIELDS, initialForm, policyOf } from "./policy-fields.js";

const KEY = "tripcurve-demo.policy";

/** `apply` takes { policy, timeoutMs } or throws; `fromElsewhere` tells whether another tab made the change. */
export function createPolicyForm(root, apply) {
  const rows = new Map();
  let form = stored() ?? initialForm();
  for (const field of FIELDS) {
    const row = fieldRow(field);
    rows.set(field.name, row);
    find(`[data-group=${field.group}]`, root).append(row.element);
  }
  const general = find(".form-error", root);
  const code = find("#policy-code", root);

  function show() {
    for (const radio of root.querySelectorAll("input[type=radio]")) radio.checked = form[radio.name] === radio.value;
    for (const box of root.querySelectorAll("input[type=checkbox]")) box.checked = box.name === "shadow" ? form.shadow : form.judgeOn === "any";
    for (const { name, shown } of FIELDS) {
      const { element, input } = rows.get(name);
      element.hidden = shown !== undefined && !shown(form);
      if (input.value !== form[name]) input.value = form[name];
    }
    find("[data-rule-choice]", root).hidden = form.kind === "consecutive";
  }

  function read() {
    const next = { ...form };
    for (const radio of root.querySelectorAll("input[type=radio]:checked")) next[radio.name] = radio.value;
    next.shadow = find("input[name=shadow]", root).checked;
    next.judgeOn = find("input[name=judgeOn]", root).checked ? "any" : "failure";
    for (const [name, { input }] of rows) next[name] = input.value;
    return next;
  }

  function attempt(fromElsewhere) {
    const settings = policyOf(form);
    for (const row of rows.values()) row.complain("");
    say(general, "");
    try {
      apply(settings, fromElsewhere);
      say(code, asCode(settings));
      return true;
    } catch (error) {
      const row = rows.get(error.field);
      if (row && !row.element.hidden) {
        row.complain(error.message);
        row.element.closest("details")?.setAttribute("open", "");
      } else say(general, error.message);
      return false;
    }
  }

  root.addEventListener("change", () => {
    form = read();
    show();
    if (attempt(false)) store(form);
  });
  root.addEventListener("submit", (event) => event.preventDefault());
  find("#policy-initial", root).addEventListener("click", () => {
    form = initialForm();
    show();
    if (attempt(false)) store(form);
  });
  addEventListener("storage", ({ key }) => {
    if (key !== KEY) return;
    form = stored() ?? form;
    show();
    attempt(true);
  });
  show();
  if (!attempt(false)) {
    form = initialForm();
    show();
    attempt(false);
  }
}

function fieldRow({ name, label, unit, hint }) {
  const id = `field-${name.replace(".", "-")}`;
  const input = el("input", {
    id,
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: hint,
    "aria-describedby": `${id}-error`,
  });
  const problem = el("p", { id: `${id}-error`, class: "field-error", role: "alert" });
  const element = el(
    "div",
    { class: "field" },
    el("label", { for: id }, label, el("code", { text: name })),
    el("span", { class: "entry" }, input, unit ? el("span", { class: "unit", text: unit }) : null),
    problem,
  );
  const complain = (message) => {
    say(problem, message);
    input.setAttribute("aria-invalid", String(message !== ""));
  };
  return { element, input, complain };
}

function asCode({ policy, timeoutMs }) {
  const text = JSON.stringify({ policy, timeoutMs }, null, 2)
    .replace(/"(\w+)":/g, "$1:")
    .replace(/\n}$/, ",\n  store: localStorageStore(),\n}");
  return `const guarded = wrapFetch(fetch, ${text});`;
}

// A form stored by an older page may lack fields or hold strange ones.
function stored() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "null");
    if (kept === null || typeof kept !== "object") return null;
    const form = initialForm();
    for (const name of Object.keys(form)) if (typeof kept[name] === typeof form[name]) form[name] = kept[name];
    return form;
  } catch {
    return null;
  }
}

function store(form) {
  try {
    localStorage.setItem(KEY, JSON.stringify(form));
  } catch {
    // Storage is full or forbidden: the policy then lasts as long as the page.
  }
}
