// The settings panel: how answers are sampled, for every chat, and what one chat begins with. A
// field left empty is not sent, so the server's default holds.
import {byId, el} from "./dom.js";

// name, label, least, most, step, what it does
const kNumbers = [
  ["temperature", "Temperature", 0, 5, 0.01, "0 always picks the most likely token."],
  ["top_p", "Top-p", 0, 1, 0.01, "Nucleus sampling: keep the smallest set with this probability."],
  ["top_k", "Top-k", 0, 1e6, 1, "Keep only this many of the most likely tokens; 0 keeps all."],
  ["min_p", "Min-p", 0, 1, 0.01, "Drop tokens less likely than this share of the most likely one."],
  [
    "seed", "Seed", 0, 2 ** 53 - 1, 1,
    "The same seed gives the same answer. Empty: drawn by the server."
  ],
  [
    "max_tokens", "Max tokens", 1, 1e8, 1,
    "The longest answer. Empty: as long as the context allows."
  ],
];

const kExampleTools = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "The current weather in a city",
      parameters: {
        type: "object",
        properties: {city: {type: "string"}, unit: {enum: ["celsius", "fahrenheit"]}},
        required: ["city"],
      },
    },
  },
];

// The tools of a chat's JSON, or an error. Bare functions ({name, parameters}) are taken too.
export function parseTools(text) {
  if (text.trim() === "") return {tools: null};
  let list;
  try {
    list = JSON.parse(text);
  } catch (error) {
    return {error: `Tools are not valid JSON: ${error.message}`};
  }
  if (!Array.isArray(list)) list = [list];
  const tools = list.map(
      (tool) => (tool?.name && !tool.function ? {type: "function", function: tool} : tool));
  if (tools.some((tool) => typeof tool?.function?.name !== "string"))
    return {error: `Each tool needs a name: {"type": "function", "function": {"name": …}}`};
  return {tools};
}

export class Settings {
  #values;
  #chat = null;

  constructor(store) {
    this.store = store;
    this.#values = store.readSettings();
    this.form = byId("settings");
    this.form.addEventListener("submit", (event) => event.preventDefault());
    byId("numbers").append(...kNumbers.map((field) => this.#number(field)));
    this.#reasoning();
    this.#chatField("system");
    this.#chatField("tools");
    byId("tools-example").addEventListener("click", () => {
      byId("tools").value = JSON.stringify(kExampleTools, null, 2);
      byId("tools").dispatchEvent(new Event("input"));
    });
    byId("settings-reset").addEventListener("click", () => this.#reset());
  }

  #number([name, label, min, max, step, hint]) {
    const input = el("input", {
      type: "number",
      id: `set-${name}`,
      name,
      placeholder: "default",
      inputmode: "decimal",
      "aria-describedby": `hint-${name}`,
      min,
      max,
      step
    });
    input.addEventListener("input", () => {
      // The arrows step by hundredths; what lies between is as good.
      const {badInput, rangeUnderflow, rangeOverflow, stepMismatch} = input.validity;
      const bad = badInput || rangeUnderflow || rangeOverflow || (step === 1 && stepMismatch);
      input.setAttribute("aria-invalid", String(bad));
      this.#set(name, bad || input.value === "" ? undefined : Number(input.value));
    });
    input.value = this.#values[name] ?? "";
    return el("div", {class: "field"}, el("label", { for: input.id
              }, label), input, el("p", {class: "hint", id: `hint-${name}`}, hint));
  }

  #reasoning() {
    const select = byId("reasoning");
    select.value = this.#values.reasoning ?? "";
    select.addEventListener("change", () => this.#set("reasoning", select.value || undefined));
  }

  #chatField(name) {
    byId(name).addEventListener("input", (event) => {
      this.#chat[name] = event.target.value;
      this.store.save(this.#chat);
      this.#showToolsError();
    });
  }

  #showToolsError() {
    const {error} = parseTools(byId("tools").value);
    byId("tools-error").textContent = error ?? "";
    byId("tools").setAttribute("aria-invalid", String(Boolean(error)));
  }

  #set(name, value) {
    this.#values[name] = value;
    this.store.writeSettings(this.#values);
  }

  #reset() {
    this.#values = {};
    this.store.writeSettings({});
    for (const [name] of kNumbers) {
      byId(`set-${name}`).value = "";
      byId(`set-${name}`).setAttribute("aria-invalid", "false");
    }
    byId("reasoning").value = "";
  }

  show(chat) {
    this.#chat = chat;
    byId("system").value = chat.system;
    byId("tools").value = chat.tools;
    this.#showToolsError();
  }

  // The fields of a request.
  fields() {
    const {reasoning, ...numbers} = this.#values;
    if (reasoning) numbers.chat_template_kwargs = {enable_thinking: reasoning === "on"};
    return numbers;
  }
}
