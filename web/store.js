// What the browser keeps: one item per chat, so that two tabs never overwrite each other's chats,
// and one for the settings. Where storage is blocked or full, things last until the page is closed.
//
// A chat: {id, title, updated, system, tools, messages}. A message is one of
//   {role: "user", content}
//   {role: "assistant", content, reasoning, calls: [{id, name, arguments}], state, error, stats}
//   {role: "tool", id, name, content}
import {toast} from "./dom.js";

const kChat = "millrace.chat.";
const kSettings = "millrace.settings";

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
}

function keys() {
  try {
    return Object.keys(localStorage);
  } catch {
    return [];
  }
}

function remove(key) {
  try {
    localStorage.removeItem(key);
  } catch {
    // Then it was never kept.
  }
}

let warned = false;
function write(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    if (!warned)
      toast(
          "This browser's storage is full or blocked: new messages are lost when the page closes.");
    warned = true;
  }
}

const isRunning = (chat) => chat.messages.some((message) => message.state === "running");

export class Store extends EventTarget {
  chats = [];

  constructor() {
    super();
    this.#load();
    window.addEventListener("storage", (event) => {
      if (!event.key?.startsWith(kChat)) return;
      this.#merge(event.key, event.newValue);
      this.#changed();
    });
  }

  #load() {
    this.chats = keys()
                     .filter((key) => key.startsWith(kChat))
                     .map(read)
                     .filter((chat) => Array.isArray(chat?.messages));
    // An answer that was streaming when the page was closed has ended.
    for (const chat of this.chats)
      for (const message of chat.messages)
        if (message.state === "running") message.state = "stopped";
    this.#sort();
  }

  // Another tab wrote. While an answer runs, here or there, each tab shows its own.
  #merge(key, value) {
    const id = key.slice(kChat.length);
    const mine = this.chats.find((chat) => chat.id === id);
    if (value === null) this.chats = this.chats.filter((chat) => chat !== mine);
    if (value === null || (mine && isRunning(mine))) return;
    const theirs = JSON.parse(value);
    if (isRunning(theirs)) return;
    if (!mine) return this.chats.push(theirs);
    Object.assign(mine, theirs);
    this.dispatchEvent(new Event("merge"));
  }

  #sort() { this.chats.sort((a, b) => b.updated - a.updated); }

  #changed() {
    this.#sort();
    this.dispatchEvent(new Event("change"));
  }

  // A new chat is kept once it has a message. It begins with the instructions of the last one.
  create(from) {
    const id = Date.now().toString(36) + Math.random().toString(36).slice(2, 8);
    return {
      id,
      title: "",
      updated: Date.now(),
      system: from?.system ?? "",
      tools: from?.tools ?? "",
      messages: []
    };
  }

  save(chat) {
    if (chat.messages.length === 0) return;
    const first = chat.messages.find((message) => message.role === "user");
    chat.title = first ? first.content.trim().replace(/\s+/g, " ").slice(0, 80) : "Untitled";
    if (!this.chats.includes(chat)) this.chats.push(chat);
    write(kChat + chat.id, chat);
    this.#changed();
  }

  touch(chat) {
    chat.updated = Date.now();
    this.save(chat);
  }

  remove(chat) {
    this.chats = this.chats.filter((other) => other !== chat);
    remove(kChat + chat.id);
    this.#changed();
  }

  readSettings() { return read(kSettings) ?? {}; }

  writeSettings(settings) { write(kSettings, settings); }
}
