// One message of a conversation, as it is seen. It draws what its message holds, and again when
// told that the message has grown; what a click does is up to the conversation, which gives the
// actions.
import {copyText, el, formatCount, formatNumber, formatSeconds, icon, iconButton} from "./dom.js";
import {grow, MarkdownView} from "./markdown.js";

// A foldable block of text that grows.
function foldable(name, kind) {
  const text = document.createTextNode("");
  const label = el("span", {}, name);
  const box =
      el("details", {class: kind, hidden: true}, el("summary", {}, icon("chevron"), label),
         el("div", {class: "folded", tabindex: "0"}, text));
  return {box, label, text};
}

export class UserTurn {
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.body = el("div", {class: "bubble"});
    this.tools = el("div", {class: "actions"});
    this.node = el("article", {class: "turn user", "aria-label": "You"}, this.body, this.tools);
    this.#show();
  }

  #show() {
    this.body.replaceChildren(this.message.content);
    this.tools.replaceChildren(
        iconButton("edit", "Edit and send again", () => this.edit()),
        iconButton("copy", "Copy message", () => copyText(this.message.content)));
    this.tools.firstChild.classList.add("only-last");
  }

  edit() {
    const box = el("textarea", {
      "aria-label": "Edit your message",
      rows: Math.min(12, this.message.content.split("\n").length + 1)
    });
    box.value = this.message.content;
    const cancel = () => {
      this.#show();
      this.node.classList.remove("editing");
      this.tools.firstChild.focus();
    };
    const send = () => {
      if (box.value.trim() === "") return box.focus();
      this.actions.resend(this.message, box.value);
    };
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") (event.stopPropagation(), cancel());
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing)
        (event.preventDefault(), send());
    });
    this.node.classList.add("editing");
    this.body.replaceChildren(
        box,
        el("div", {class: "row"}, el("button", {type: "button", onclick: cancel}, "Cancel"),
           el("button", {type: "button", class: "primary", onclick: send}, "Send")));
    box.focus();
  }

  update() {}
}

export class ToolTurn {
  constructor(message) {
    const {box, label, text} = foldable(`Result of ${message.name || "tool"}`, "result");
    text.data = message.content;
    label.append(el("span", {class: "dim"}, ` ${message.content.length} characters`));
    box.hidden = false;
    this.node = el("article", {class: "turn tool", "aria-label": "Tool result"}, box);
  }

  update() {}
}

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;  // still streaming, or not JSON at all
  }
}

class CallView {
  constructor() {
    this.name = el("span", {class: "name"});
    this.text = document.createTextNode("");
    this.result = el("textarea", {rows: 2, placeholder: "Result to send back to the model"});
    this.answer = el("label", {class: "answer"}, el("span", {class: "unseen"}), this.result);
    this.node =
        el("section", {class: "call"},
           el("header", {}, icon("tool"), this.name, el("span", {class: "dim"}, "tool call")),
           el("pre", {tabindex: "0"}, el("code", {}, this.text)), this.answer);
  }

  update(call, open) {
    this.name.textContent = call.name || "…";
    this.answer.firstChild.textContent = `Result of ${call.name}`;
    this.text.data = open === "running" ? call.arguments : pretty(call.arguments);
    this.answer.hidden = open !== "waiting";
  }
}

const kWhy = {
  length: "Cut off at the token limit.",
  content_filter: "Ended by a filter."
};

// The counters of a finished answer, as words, and what stands behind them.
function counters(stats) {
  const words = [];
  if (stats.n_prompt !== undefined) {
    words.push(`${formatCount(stats.n_prompt)} prompt`);
    const share = stats.n_prompt > 0 ? Math.round((100 * stats.n_cached) / stats.n_prompt) : 0;
    words.push(`${formatCount(stats.n_cached)} cached (${share} %)`);
    words.push(`${formatCount(stats.n_completion)} completion`);
  }
  if (stats.tokens_per_s) words.push(`${formatNumber(stats.tokens_per_s)} tokens/s`);
  if (stats.first_s !== undefined) words.push(`${formatSeconds(stats.first_s)} to first token`);
  return words;
}

function details(stats) {
  const named = {
    Seed: stats.seed,
    Fingerprint: stats.fingerprint,
    Model: stats.model,
    Request: stats.id,
    "Reasoning tokens": stats.n_reasoning || undefined,
    Ended: stats.finish
  };
  return Object.entries(named).filter(
      ([, value]) => value !== undefined && value !== null && value !== "");
}

function statsBox(stats) {
  const more = details(stats);
  return el(
      "details", {class: "stats"},
      el("summary", {title: more.map(([name, value]) => `${name}: ${value}`).join("\n")},
         ...counters(stats).map((word) => el("span", {}, word))),
      el("dl", {},
         ...more.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))])));
}

export class AssistantTurn {
  #calls = [];
  #userFolded = false;
  #ended = false;

  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.reasoning = foldable("Reasoning", "reasoning");
    this.reasoning.box.firstChild.addEventListener("click", () => (this.#userFolded = true));
    this.waiting = el("p", {class: "waiting"});
    const body = el("div", {class: "markdown"});
    this.markdown = new MarkdownView(body);
    this.calls = el("div", {class: "calls"});
    this.sendResults =
        el("button", {
          type: "button",
          class: "primary",
          hidden: true,
          onclick: () => actions.answerCalls(message, this.#calls.map((view) => view.result.value))
        },
           "Send results");
    // What failed is said once, not whenever the chat is opened.
    const live = message.state === "running";
    this.error = el("p", {class: "error", role: live ? "alert" : undefined, hidden: true});
    this.foot = el("div", {class: "foot"});
    this.node =
        el("article", {class: "turn assistant", "aria-label": "Answer"}, this.reasoning.box,
           this.waiting, body, this.calls, this.sendResults, this.error, this.foot);
    this.update();
  }

  get text() { return this.markdown.root.textContent; }

  // Draws what is new. `progress`: what to say while nothing has come yet.
  update(progress) {
    const {message} = this;
    const running = message.state === "running";
    const begun = Boolean(message.content || message.reasoning || message.calls?.length);
    this.node.setAttribute("aria-busy", String(running));
    this.waiting.hidden = !running || begun;
    if (!this.waiting.hidden)
      this.waiting.replaceChildren(el("span", {class: "dots"}), progress ?? "Waiting");
    this.#updateReasoning(running);
    this.markdown.update(message.content);
    this.markdown.root.classList.toggle("growing", running && message.content !== "");
    this.#updateCalls(running);
    if (!running && !this.#ended) this.#end();
  }

  #updateReasoning(running) {
    const {message, reasoning} = this;
    if (!message.reasoning) return;
    reasoning.box.hidden = false;
    grow(reasoning.text, message.reasoning);
    const thinking = running && !message.content && !message.calls?.length;
    if (!this.#userFolded && reasoning.box.open !== thinking) reasoning.box.open = thinking;
    const seconds = message.stats?.reasoning_s;
    const took = seconds >= 0.1 ? `Reasoned for ${formatSeconds(seconds)}` : "Reasoning";
    reasoning.label.textContent = thinking ? "Reasoning…" : took;
    const box = reasoning.box.lastChild;
    if (thinking) box.scrollTop = box.scrollHeight;
  }

  #updateCalls(running) {
    const calls = this.message.calls ?? [];
    const open = running ? "running" : this.actions.isLast(this.message) ? "waiting" : "done";
    while (this.#calls.length < calls.length) {
      this.#calls.push(new CallView());
      this.calls.append(this.#calls.at(-1).node);
    }
    calls.forEach((call, i) => this.#calls[i].update(call, open));
    this.sendResults.hidden = calls.length === 0 || open !== "waiting";
  }

  #end() {
    this.#ended = true;
    const {message, actions} = this;
    this.error.hidden = !message.error;
    this.error.textContent = message.error ?? "";
    const note = message.state === "stopped" ? "Stopped." : kWhy[message.stats?.finish];
    const retry = iconButton("retry", "Try again", () => actions.retry(message));
    retry.classList.add("only-last");
    this.foot.replaceChildren(
        el("div", {class: "actions"}, retry,
           ...(message.content ?
                   [iconButton("copy", "Copy answer", () => copyText(message.content))] :
                   [])),
        ...(note ? [el("span", {class: "note"}, note)] : []),
        ...(message.stats && counters(message.stats).length > 0 ? [statsBox(message.stats)] : []));
  }
}

const kinds = {
  user: UserTurn,
  assistant: AssistantTurn,
  tool: ToolTurn
};

export const makeTurn = (message, actions) => new kinds[message.role](message, actions);
