// The lab's data: from the server's /lab/api, or from files beside the page where it was exported.
import {ApiError, events, request} from "./stream.js";

export const exportedAt = document.documentElement.dataset.static ?? null;

const files = new Map();
function file(name) {
  if (!files.has(name)) files.set(name, load(name));
  return files.get(name);
}
async function load(name) {
  const response = await fetch(`data/${name}.json`);
  if (response.ok) return response.json();
  throw new ApiError(
      response.status === 404 ? "This is not part of the exported site." :
                                `The file server answered ${response.status}.`,
      response.status);
}

// A shell pattern with * and ?, as the server's.
function matcher(pattern) {
  const escaped = pattern.replace(/[.+^${}()|\\[\]]/g, "\\$&");
  return new RegExp(`^${escaped.replace(/\*/g, ".*").replace(/\?/g, ".")}$`, "s");
}

// What the server does for a list, on one that is here whole. `before` is a place in it.
function pageOf(items, {before = 0, limit = 50, ...filters}) {
  const wanted = Object.entries(filters).filter(([, value]) => value !== "" && value !== undefined);
  const tests = wanted.map(([key, value]) => {
    const test = matcher(String(value));
    return (item) => test.test(String(item[key] ?? ""));
  });
  const found = items.filter((item) => tests.every((test) => test(item)));
  const end = Number(before) + Number(limit);
  return {items: found.slice(Number(before), end), next: end < found.length ? end : null};
}

async function fromFiles(path, params) {
  const {around, ...rest} = params;
  const found = await file(path.replace("/", "-"));
  if (path === "graph") return around ? neighbourhood(found, around) : found;
  return found.items && !path.includes("/") ? pageOf(found.items, rest) : found;
}

// What is within two steps of a node, of a graph that is here whole.
function neighbourhood(graph, around) {
  const near = new Set([around]);
  for (let step = 0; step < 2; ++step) {
    const ends = graph.edges.filter((edge) => near.has(edge.from) || near.has(edge.to));
    for (const edge of ends) near.add(edge.from).add(edge.to);
  }
  return {
    nodes: graph.nodes.filter((node) => near.has(node.id)),
    edges: graph.edges.filter((edge) => near.has(edge.from) && near.has(edge.to)),
  };
}

// One document. Parameters that are empty are not sent.
export async function get(path, params = {}) {
  if (exportedAt) return fromFiles(path, params);
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params))
    if (value !== "" && value !== null && value !== undefined) query.set(key, value);
  const text = query.toString();
  return (await request(`api/${path}${text ? `?${text}` : ""}`)).json();
}

// Calls `take` with every live event while the page can be seen; `tell` with the connection's
// state.
export function follow(take, tell) {
  if (exportedAt) return tell("static");
  let stop = new AbortController();
  let is_on = false;
  const run = async () => {
    if (is_on) return;
    is_on = true;
    let wait_ms = 1000;
    while (!document.hidden) {
      stop = new AbortController();
      try {
        const response = await request("api/live", {signal: stop.signal});
        tell("live");
        wait_ms = 1000;
        for await (const data of events(response.body)) take(JSON.parse(data));
      } catch (error) {
        if (error.status === 401 || error.status === 403) {
          tell("refused");
          break;
        }
      }
      if (document.hidden) break;
      tell("lost");
      await new Promise((done) => setTimeout(done, wait_ms));
      wait_ms = Math.min(30000, wait_ms * 2);
    }
    is_on = false;
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stop.abort();
      tell("paused");
    } else {
      run();
    }
  });
  run();
}
