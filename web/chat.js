// The conversation: shows a chat, sends it to the server and lets the answer grow. An answer goes
// on while another chat is shown; what is drawn follows its message.
import {announce, byId, formatCount, formatSeconds} from "./dom.js";
import {parseTools} from "./settings.js";
import {complete} from "./stream.js";
import {makeTurn} from "./turn.js";

const kSaveEvery_ms = 3000;
const kPause_ms = 25;     // between two drawings
const kAnnounced = 2000;  // characters of an answer that are read out at its end

// A chat's messages as the API takes them. What failed before it began is left out.
function apiMessages(chat) {
  const out = chat.system.trim() ? [{role: "system", content: chat.system}] : [];
  for (const message of chat.messages) {
    if (message.role === "tool") {
      out.push({role: "tool", tool_call_id: message.id, content: message.content});
    } else if (message.role === "assistant") {
      const calls = (message.calls ?? [])
                        .map(
                            ({id, name, arguments: args}) =>
                                ({id, type: "function", function: {name, arguments: args}}));
      if (!message.content && calls.length === 0) continue;
      out.push({
        role: "assistant",
        content: message.content || null,
        ...(message.reasoning && {reasoning_content: message.reasoning}),
        ...(calls.length > 0 && {tool_calls: calls})
      });
    } else if (out.at(-1)?.role === "user") {
      out.at(-1).content += `\n\n${message.content}`;  // templates want the roles to alternate
    } else {
      out.push({role: "user", content: message.content});
    }
  }
  return out;
}

// Adds one chunk to a message.
function take(message, chunk, now_s) {
  const {stats} = message;
  stats.id ??= chunk.id;
  stats.model ??= chunk.model;
  stats.fingerprint ??= chunk.system_fingerprint;
  stats.seed ??= chunk.seed ?? chunk.usage?.seed;
  if (chunk.usage) takeUsage(stats, chunk.usage);
  const choice = chunk.choices?.[0];
  if (choice?.finish_reason) stats.finish = choice.finish_reason;
  const delta = choice?.delta ?? {};
  const reasoning = delta.reasoning_content ?? delta.reasoning ?? "";
  const content = delta.content ?? "";
  if (!reasoning && !content && !delta.tool_calls) return;
  stats.first_s ??= now_s;
  stats.last_s = now_s;
  message.reasoning += reasoning;
  if ((content || delta.tool_calls) && message.reasoning)
    stats.reasoning_s ??= now_s - stats.first_s;
  message.content += content;
  for (const piece of delta.tool_calls ?? []) takeCall(message.calls, piece);
}

function takeUsage(stats, usage) {
  stats.n_prompt = usage.prompt_tokens ?? 0;
  stats.n_cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  stats.n_completion = usage.completion_tokens ?? 0;
  stats.n_reasoning = usage.completion_tokens_details?.reasoning_tokens ?? 0;
  const decode_s = stats.last_s - stats.first_s;
  // The first token is not timed: it came with the prompt. A moment is too short to measure.
  if (decode_s > 0.02 && stats.n_completion > 1)
    stats.tokens_per_s = (stats.n_completion - 1) / decode_s;
}

function takeCall(calls, piece) {
  const index = piece.index ?? 0;
  if (!Number.isInteger(index) || index < 0 || index > 255) return;
  while (calls.length <= index) calls.push({id: "", name: "", arguments: ""});
  const call = calls[index];
  call.id ||= piece.id ?? "";
  call.name ||= piece.function?.name ?? "";
  call.arguments += piece.function?.arguments ?? "";
}

function progressText(message, chunk) {
  const progress = chunk.prompt_progress;
  if (!progress?.total) return null;
  return `Reading the prompt: ${formatCount(progress.processed)} of ${
      formatCount(progress.total)} tokens`;
}

export class Conversation extends EventTarget {
  chat = null;
  #turns = new Map();  // message -> what shows it, of the shown chat
  #runs = new Map();   // chat -> {abort, message}
  #dirty = null;       // the message to draw next
  #busy = false;       // a drawing is planned, or the pause after one
  #stuck = true;       // the end is kept in sight

  constructor(store, settings) {
    super();
    this.store = store;
    this.settings = settings;
    this.model = "";
    this.box = byId("conversation");
    this.list = byId("turns");
    this.box.addEventListener("scroll", () => this.#scrolled());
    byId("latest").addEventListener("click", () => this.#toEnd(true));
    window.addEventListener("pagehide", () => this.#runs.forEach((run, chat) => store.save(chat)));
    new ResizeObserver(() => this.#toEnd()).observe(this.box);
  }

  get isRunning() { return this.#runs.has(this.chat); }

  isRunningIn(chat) { return this.#runs.has(chat); }

  show(chat) {
    this.chat = chat;
    this.#turns.clear();
    this.list.replaceChildren();
    for (const message of chat.messages) this.#addTurn(message);
    this.#toEnd(true);
    this.#changed();
  }

  #actions = {
    retry: (message) => this.#goOnFrom(message),
    resend: (message, content) => this.#resend(message, content),
    answerCalls: (message, results) => this.#answerCalls(message, results),
    isLast: (message) => this.chat.messages.at(-1) === message,
  };

  #changed() {
    byId("welcome").hidden = this.chat.messages.length > 0;
    this.dispatchEvent(new Event("change"));
  }

  #addTurn(message) {
    const turn = makeTurn(message, this.#actions);
    this.#turns.set(message, turn);
    this.list.append(turn.node);
  }

  #add(message) {
    this.chat.messages.push(message);
    this.#addTurn(message);
  }

  // Takes an answer and all after it away, and asks again.
  #goOnFrom(message) {
    if (this.isRunning) return;
    for (const old of this.chat.messages.splice(this.chat.messages.indexOf(message))) {
      this.#turns.get(old).node.remove();
      this.#turns.delete(old);
    }
    this.#answer();
  }

  #resend(message, content) {
    if (this.isRunning) return;
    this.chat.messages.splice(this.chat.messages.indexOf(message));
    this.show(this.chat);
    this.send(content);
  }

  #answerCalls(message, results) {
    if (this.isRunning) return;
    message.calls.forEach(
        ({id, name}, i) => this.#add({role: "tool", id, name, content: results[i]}));
    this.#turns.get(message).update();
    this.#answer();
  }

  send(content) {
    const before = this.chat.messages.at(-1);
    this.#add({role: "user", content});
    if (before) this.#turns.get(before).update();
    this.#answer();
  }

  stop(chat = this.chat) { this.#runs.get(chat)?.abort.abort(); }

  // Asks for an answer to the shown chat.
  async #answer() {
    const {chat} = this;
    const message =
        {role: "assistant", content: "", reasoning: "", calls: [], state: "running", stats: {}};
    const body = this.#body(chat);
    this.#add(message);
    const run =
        {abort: new AbortController(), message, progress: null, begun_ms: performance.now()};
    this.#runs.set(chat, run);
    this.store.touch(chat);
    this.#toEnd(true);
    this.#changed();
    announce("Answering");
    const ticking = setInterval(() => this.#tick(chat, run), 500);
    try {
      await this.#read(chat, run, body);
      message.state = "done";
    } catch (error) {
      message.state = error.name === "AbortError" ? "stopped" : "failed";
      if (message.state === "failed") message.error = error.message;
    }
    clearInterval(ticking);
    this.#runs.delete(chat);
    if (this.store.chats.includes(chat))
      this.store.touch(chat);  // it may have been deleted meanwhile
    this.#finish(chat, message);
  }

  #body(chat) {
    return {
      model: this.model,
      messages: apiMessages(chat),
      session_id: chat.id,
      return_progress: true,
      tools: parseTools(chat.tools).tools ?? undefined,
      ...this.settings.fields()
    };
  }

  async #read(chat, run, body) {
    const {message} = run;
    let saved_ms = performance.now();
    for await (const chunk of complete(body, run.abort.signal)) {
      const now_ms = performance.now();
      take(message, chunk, (now_ms - run.begun_ms) / 1000);
      run.progress = progressText(message, chunk) ?? run.progress;
      this.#plan(message);
      if (now_ms - saved_ms < kSaveEvery_ms) continue;
      saved_ms = now_ms;
      this.store.save(chat);
    }
  }

  // While nothing has come yet, says for how long.
  #tick(chat, run) {
    if (run.message.stats.first_s !== undefined || chat !== this.chat) return;
    const waited = Math.floor((performance.now() - run.begun_ms) / 1000);
    const text = run.progress ?? "Waiting for the first token";
    this.#turns.get(run.message)?.update(waited < 1 ? text : `${text} · ${formatSeconds(waited)}`);
  }

  #finish(chat, message) {
    if (chat === this.chat) {
      this.#turns.get(message)?.update();
      this.#toEnd();
    }
    const turn = this.#turns.get(message);
    const text = turn ? turn.text.slice(0, kAnnounced) : "";
    const how = {done: "Answer", stopped: "Answer stopped", failed: "Answer failed"}[message.state];
    const calls = message.calls.map((call) => `calls ${call.name}`).join(", ");
    announce([how, calls, text].filter(Boolean).join(": "));
    this.#changed();
  }

  // Draws some 25 times a second, and never for more than a quarter of the time: what one drawing
  // took is left free three times over before the next.
  #plan(message) {
    if (!this.#turns.has(message)) return;
    this.#dirty = message;
    if (this.#busy) return;
    this.#busy = true;
    requestAnimationFrame(() => {
      const begin_ms = performance.now();
      this.#turns.get(this.#dirty)?.update();
      this.#dirty = null;
      this.#toEnd();
      setTimeout(() => this.#rested(), Math.max(kPause_ms, 3 * (performance.now() - begin_ms)));
    });
  }

  #rested() {
    this.#busy = false;
    if (this.#dirty) this.#plan(this.#dirty);
  }

  #scrolled() {
    const {scrollHeight, scrollTop, clientHeight} = this.box;
    this.#stuck = scrollHeight - scrollTop - clientHeight < 48;
    byId("latest").hidden = this.#stuck;
  }

  #toEnd(force = false) {
    if (force) this.#stuck = true;
    if (this.#stuck) this.box.scrollTop = this.box.scrollHeight;
    byId("latest").hidden = this.#stuck;
  }
}
