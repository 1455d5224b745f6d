// The settings panel: how answers are sampled, for every chat, and what one chat begins with. A field left
// empty is not sent, so the server's default holds.
import { byId, el } from "./dom.js";

const kNumbers = [
  { name: "temperature", label: "Temperature", min: 0, max: 5, step: 0.01, hint: "0 always picks the most likely token." },
  { name: "top_p", label: "Top-p", min: 0, max: 1, step: 0.01, hint: "Nucleus sampling: keep the smallest set with this probability." },
  { name: "top_k", label: "Top-k", min: 0, max: 1000000, step: 1, hint: "Keep only this many of the most likely tokens; 0 keeps all." },
  { name: "min_p", label: "Min-p", min: 0, max: 1, step: 0.01, hint: "Drop tokens less likely than this share of the most likely one." },
  { name: "seed", label: "Seed", min: 0, max: Number.MAX_SAFE_INTEGER, step: 1, hint: "The same seed gives the same answer. Empty: the server draws one." },
  { name: "max_tokens", label: "Max tokens", min: 1, max: 100000000, step: 1, hint: "The longest answer. Empty: until the model ends or the context is full." },
];

const kExampleTools = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "The current weather in a city",
      parameters: {
        type: "object",
        properties: { city: { type: "string" }, unit: { enum: ["celsius", "fahrenheit"] } },
        required: ["city"],
      },
    },
  },
];

// The tools of a chat's JSON, or an error. Bare functions ({name, parameters}) are taken too.
export function parseTools(text) {
  if (text.trim() === "") return { tools: null };
  let list;
  try {
    list = JSON.parse(text);
  } catch (error) {
    return { error: `Tools are not valid JSON: ${error.message}` };
  }
  if (!Array.isArray(list)) list = [list];
  const tools = list.map((tool) => (tool?.name && !tool.function ? { type: "function", function: tool } : tool));
  if (tools.some((tool) => typeof tool?.function?.name !== "string"))
    return { error: "Each tool needs a name: {\"type\": \"function\", \"function\": {\"name\": …}}" };
  return { tools };
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

  #number({ name, label, hint, ...range }) {
    const input = el("input", { type: "number", id: `set-${name}`, name, placeholder: "default", inputmode: "decimal",
      "aria-describedby": `hint-${name}`, ...range });
    input.addEventListener("input", () => {
      // The arrows step by hundredths; what lies between is as good.
      const { badInput, rangeUnderflow, rangeOverflow, stepMismatch } = input.validity;
      const bad = badInput || rangeUnderflow || rangeOverflow || (range.step === 1 && stepMismatch);
      input.setAttribute("aria-invalid", String(bad));
      this.#set(name, bad || input.value === "" ? undefined : Number(input.value));
    });
    input.value = this.#values[name] ?? "";
    return el("div", { class: "field" }, el("label", { for: input.id }, label), input,
      el("p", { class: "hint", id: `hint-${name}` }, hint));
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
    const { error } = parseTools(byId("tools").value);
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
    for (const { name } of kNumbers) {
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
    const { reasoning, ...numbers } = this.#values;
    if (reasoning) numbers.chat_template_kwargs = { enable_thinking: reasoning === "on" };
    return numbers;
  }
}
