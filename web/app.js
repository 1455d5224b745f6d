// Starts the page: the list of chats, the box to write in, the panels, the API key.
import {Conversation} from "./chat.js";
import {announce, byId, copyText, el, icon, iconButton, toast} from "./dom.js";
import {EngineView} from "./engine_view.js";
import {parseTools, Settings} from "./settings.js";
import {Store} from "./store.js";
import {onKeyNeeded, request} from "./stream.js";

const store = new Store();
const settings = new Settings(store);
const conversation = new Conversation(store, settings);
const engine = new EngineView();
const box = byId("message");

// --- chats ---

function open(chat) {
  conversation.show(chat);
  settings.show(chat);
  try {
    sessionStorage.setItem("millrace.open", chat.id);
  } catch {
    // The next load begins with a new chat.
  }
}

function newChat() {
  open(store.create(conversation.chat));
  panels.leave();
  box.focus();
}

function removeChat(chat) {
  conversation.stop(chat);
  store.remove(chat);
  if (conversation.chat === chat) newChat();
  toast("Chat deleted.", "Undo", () => store.save(chat));
}

function chatRow(chat) {
  const title = chat.title || "Untitled";
  const choose = () => {
    open(chat);
    panels.leave();
  };
  return el(
      "li", {class: conversation.isRunningIn(chat) ? "running" : ""},
      el("button", {
        type: "button",
        class: "title",
        title,
        "aria-current": conversation.chat === chat ? "true" : undefined,
        onclick: choose
      },
         title),
      iconButton("trash", `Delete chat: ${title}`, () => removeChat(chat)));
}

let shownChats = "";
function showChats() {
  const {chat} = conversation;
  // Saving says that something changed, often; the list keeps its focus where nothing in it did.
  const now = JSON.stringify(
      store.chats.map((one) => [one.id, one.title, one === chat, conversation.isRunningIn(one)]));
  if (now !== shownChats) byId("chat-list").replaceChildren(...store.chats.map(chatRow));
  shownChats = now;
  byId("no-chats").hidden = store.chats.length > 0;
  byId("chat-title").textContent = chat?.title || "New chat";
  document.title = chat?.title ? `${chat.title} · Millrace` : "Millrace";
}

// --- the box to write in ---

function fitBox() {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

function showRunning() {
  const running = conversation.isRunning;
  document.body.classList.toggle("running", running);
  const button = byId("send");
  button.title = running ? "Stop (Escape)" : "Send (Enter)";
  button.setAttribute("aria-label", running ? "Stop" : "Send");
  button.disabled = !running && box.value.trim() === "";
  button.replaceChildren(icon(running ? "stop" : "send"));
}

function send() {
  if (conversation.isRunning || box.value.trim() === "") return;
  const {error} = parseTools(conversation.chat.tools);
  if (error) {
    panels.open("settings-panel");
    byId("tools").focus();
    return toast(error);
  }
  if (!conversation.model) loadModels();
  const text = box.value;
  box.value = "";
  fitBox();
  conversation.send(text);
}

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  if (conversation.isRunning)
    conversation.stop();
  else
    send();
});

box.addEventListener("input", () => {
  fitBox();
  showRunning();
});

// A touch keyboard has no Shift+Enter, so there Enter is a new line and the button sends.
box.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  if (!matchMedia("(any-pointer: fine)").matches && matchMedia("(any-pointer: coarse)").matches)
    return;
  event.preventDefault();
  send();
});

// --- panels: beside the conversation where there is room, over it where there is not ---

const panels = {
  names: ["chats", "settings-panel", "engine-panel"],
  wide: matchMedia("(min-width: 64rem)"),

  isOpen: (name) => !byId(name).hidden,
  button: (name) => document.querySelector(`[aria-controls="${name}"]`),

  show(name, shown) {
    byId(name).hidden = !shown;
    this.button(name).setAttribute("aria-expanded", String(shown));
    if (name === "engine-panel") engine.setShown(shown);
    const over = !this.wide.matches && this.names.some(this.isOpen);
    byId("backdrop").hidden = !over;
    byId("main").inert = over;
  },

  open(name) {
    for (const other of this.names)
      if (other !== name && (other !== "chats" || !this.wide.matches)) this.show(other, false);
    this.show(name, true);
    byId(name).focus();
  },

  close(name) {
    const inside = byId(name).contains(document.activeElement);
    this.show(name, false);
    if (inside) this.button(name).focus();
  },

  // Closes what covers the conversation.
  leave() {
    if (!this.wide.matches) this.names.filter(this.isOpen).forEach((name) => this.close(name));
  },

  start() {
    for (const name of this.names)
      this.button(name).addEventListener(
          "click", () => (this.isOpen(name) ? this.close(name) : this.open(name)));
    for (const button of document.querySelectorAll("[data-close]"))
      button.addEventListener("click", () => this.close(button.dataset.close));
    byId("backdrop").addEventListener("click", () => this.leave());
    const arrange = () =>
        this.names.forEach((name) => this.show(name, name === "chats" && this.wide.matches));
    this.wide.addEventListener("change", arrange);
    arrange();
  },
};

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || byId("key-dialog").open) return;
  if (!byId("backdrop").hidden)
    panels.leave();
  else if (conversation.isRunning)
    conversation.stop();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.(".copy");
  if (!button) return;
  await copyText(button.closest("figure").querySelector("code").textContent);
  button.lastChild.data = "Copied";
  setTimeout(() => (button.lastChild.data = "Copy"), 1500);
});

// --- the API key ---

onKeyNeeded((refused) => new Promise((resolve) => {
              const dialog = byId("key-dialog");
              byId("key-note").textContent =
                  refused ? "The server refused the last key." : "This server asks for an API key.";
              byId("key").value = "";
              dialog.returnValue = "";
              dialog.addEventListener("close", () => {
                const key = byId("key").value.trim();
                byId("key").value = "";
                resolve(dialog.returnValue === "use" && key ? key : null);
              }, {once: true});
              dialog.showModal();
            }));

byId("key-cancel").addEventListener("click", () => byId("key-dialog").close());

// --- the model ---

function showModels(models) {
  const select = byId("model");
  select.replaceChildren(...models.map(({id}) => el("option", {value: id}, id)));
  select.hidden = models.length < 2;
  byId("model-name").hidden = models.length > 1;
  byId("model-name").textContent = models[0]?.id ?? "";
  conversation.model = models[0]?.id ?? "";
  const context = models[0]?.max_model_len ?? models[0]?.meta?.n_ctx;
  byId("welcome-model").textContent = context ?
      `${conversation.model}, ${context.toLocaleString("en")} tokens of context` :
      conversation.model;
}

async function loadModels() {
  try {
    const {data} = await (await request("/v1/models")).json();
    showModels(data ?? []);
  } catch (error) {
    byId("model-name").textContent = error.status === 401 ? "no key" : "not connected";
    if (error.status !== 401) toast(error.message, "Try again", loadModels);
  }
}

byId("model").addEventListener("change", (event) => (conversation.model = event.target.value));
byId("new-chat").addEventListener("click", newChat);
byId("new-chat-small").addEventListener("click", newChat);

store.addEventListener("change", showChats);
store.addEventListener("merge", () => {
  if (store.chats.includes(conversation.chat)) open(conversation.chat);
});
conversation.addEventListener("change", () => {
  showChats();
  showRunning();
});

panels.start();
let last = null;
try {
  last = sessionStorage.getItem("millrace.open");
} catch {
  // Storage is blocked.
}
open(store.chats.find((chat) => chat.id === last) ?? store.create(store.chats[0]));
box.focus();
loadModels();
announce("");
