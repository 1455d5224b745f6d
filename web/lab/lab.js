// Starts the lab's page: the sections behind its tabs, the live stream, the key.
import {exportedAt, follow} from "./data.js";
import {byId, el} from "./dom.js";
import * as experiments from "./experiments.js";
import * as graph from "./graph.js";
import * as now from "./now.js";
import {trouble} from "./parts.js";
import * as records from "./records.js";
import * as runs from "./runs.js";
import {onKeyNeeded, renewKey} from "./stream.js";
import * as trends from "./trends.js";

// tab: which of them is marked. Each view fills its element and tells what it does about live news.
const kViews = {
  now: {tab: "now", title: "Now", show: now.show},
  experiments: {tab: "experiments", title: "Experiments", show: experiments.show},
  hyp: {tab: "experiments", title: "Hypothesis", show: experiments.showOne},
  runs: {tab: "runs", title: "Runs", show: runs.show},
  run: {tab: "runs", title: "Run", show: runs.showOne},
  plots: {tab: "plots", title: "Plots", show: trends.show},
  graph: {tab: "graph", title: "Graph", show: graph.show},
  learnings: {tab: "learnings", title: "Learnings", show: records.learnings},
  log: {tab: "log", title: "Log", show: records.log},
  posts: {tab: "posts", title: "Posts", show: records.posts},
  post: {tab: "posts", title: "Post", show: records.post},
};

let shown = {};  // what the view does about news
let visit = 0;   // so that a slow view does not draw over the next one

function words() {
  try {
    return location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return [];
  }
}

async function route(isFirst = false) {
  const [name = "now", ...rest] = words();
  const view = Object.hasOwn(kViews, name) ? kViews[name] : kViews.now;
  const mine = ++visit;
  const place = el("div", {class: "view"});
  for (const tab of byId("tabs").children) {
    const isHere = tab.getAttribute("href") === `#/${view.tab}`;
    isHere ? tab.setAttribute("aria-current", "page") : tab.removeAttribute("aria-current");
    if (isHere) tab.scrollIntoView({block: "nearest", inline: "nearest"});
  }
  document.title = `${[view.title, ...rest].join(" ")} · Millrace lab`;
  byId("view").setAttribute("aria-busy", "true");
  shown = {};
  let news = {};
  try {
    news = await view.show(place, ...rest);
  } catch (error) {
    place.append(trouble(error));
    if (error.status === 401 || error.status === 403) place.append(keyButton());
  }
  if (mine !== visit) return;
  shown = news ?? {};
  byId("view").replaceChildren(place);
  byId("view").removeAttribute("aria-busy");
  if (!isFirst) byId("view").focus({preventScroll: true});
  scrollTo(0, 0);
}

const keyButton = () =>
    el("p", {},
       el("button", {
         type: "button",
         class: "primary",
         onclick: async () => {
           if (!(await renewKey())) return;
           route();
           start();
         }
       },
          "Enter the admin key"));

// --- live ---

const kStates = {
  live: "live",
  lost: "connection lost, trying again",
  paused: "paused",
  refused: "needs the admin key",
  static: "a copy",
  off: "not live"
};

function tell(state) {
  byId("live").dataset.state = state;
  byId("live-text").textContent =
      state === "static" ? `copy of ${exportedAt.slice(0, 10)}` : kStates[state];
}

let pending = null;
function take(event) {
  if (event.type === "machine") {
    now.takeMachine(event);
    shown.machine?.(event);
    const worst = event.alerts[0]?.level;
    byId("live").dataset.alert = worst ?? "";
  } else {
    // A run writes several events at once: one look is enough for all.
    pending ??= setTimeout(() => {
      pending = null;
      Promise.resolve(shown.log?.()).catch(() => {});
    }, 300);
  }
}

let isFollowing = false;
function start() {
  if (isFollowing) return;
  isFollowing = true;
  follow(take, (state) => {
    if (state === "refused") isFollowing = false;
    tell(state);
  });
}

// --- the key ---

onKeyNeeded((refused) => new Promise((resolve) => {
              const dialog = byId("key-dialog");
              byId("key-note").textContent = refused ? "The server refused the last key." :
                                                       "The lab's data need the admin key.";
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

addEventListener("hashchange", () => {
  if (location.hash !== "#view") route();
});
route(true).then(start);
