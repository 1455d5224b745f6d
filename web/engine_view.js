// The live view of the engine: asks /debug/engine every second while it can be seen, and draws what
// it says. Numbers are words first; the charts repeat them for the eye.
import {byId, el, formatCount, formatNumber, formatSeconds, svg} from "./dom.js";
import {renewKey, request} from "./stream.js";

const kPoll_ms = 1000;
const kHistory = 120;              // samples of tokens/s
const kWidth = 300, kHeight = 56;  // of a chart's own units

const kRefusals = {
  401: "The engine's state needs the admin key.",
  403: "This key may not see the engine's state: it needs the admin key.",
  404: "This server does not show its engine's state.",
};

const percent = (part, whole) => (whole > 0 ? (100 * part) / whole : 0);
const plural = (n, word) => `${formatCount(n)} ${word}${n === 1 ? "" : "s"}`;

function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
}

// A line over its area, the newest value at the right end. `room`: how many values the width holds.
function lineChart(values, room, label) {
  const box = `0 0 ${kWidth} ${kHeight}`;
  const chart = svg("svg", {
    class: "chart",
    viewBox: box,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": label
  });
  const top = Math.max(...values, 1e-9) * 1.1;
  const step = kWidth / Math.max(1, room - 1);
  const x = (i) => (kWidth - (values.length - 1 - i) * step).toFixed(1);
  const y = (value) => (kHeight - (value / top) * kHeight).toFixed(1);
  const points = values.map((value, i) => `${x(i)} ${y(value)}`).join(" L ");
  chart.append(svg("path", {class: "grid", d: `M 0 ${kHeight / 2} H ${kWidth}`}));
  if (values.length > 1) {
    chart.append(
        svg("path",
            {class: "area", d: `M ${x(0)} ${kHeight} L ${points} L ${kWidth} ${kHeight} Z`}),
        svg("path", {class: "line", d: `M ${points}`}));
  }
  return chart;
}

// Parts of a whole, side by side: [{name, value}], the kinds told apart by class and by the
// legend's words.
function stackedBar(parts, label) {
  const total = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  const bar = svg("svg", {
    class: "bar",
    viewBox: "0 0 100 1",
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": label
  });
  let x = 0;
  for (const {name, value} of parts) {
    const width = (100 * value) / total;
    bar.append(svg("rect", {
      class: `part-${name.replace(" ", "-")}`,
      x: x.toFixed(3),
      width: width.toFixed(3),
      height: 1
    }));
    x += width;
  }
  return bar;
}

function progressBar(done, total, label) {
  return stackedBar(
      [
        {name: "in use", value: Math.min(done, total)},
        {name: "free", value: Math.max(0, total - done)}
      ],
      label);
}

function legend(parts) {
  return el(
      "ul", {class: "legend"},
      ...parts.map(
          ({name, value}) =>
              el("li", {}, el("span", {class: `key part-${name.replace(" ", "-")}`}), `${name} `,
                 el("b", {}, formatCount(value)))));
}

function requestRow(one) {
  const prefill = one.phase === "prefill";
  let what = prefill ? `${formatCount(one.n_done)} of ` : "";
  if (one.phase === "decode") what = `${plural(one.n_tokens, "token")} · `;
  const cached = one.n_cached > 0 ? ` (${formatCount(one.n_cached)} cached)` : "";
  return el(
      "li", {class: `request ${one.phase}`},
      el("div", {class: "who"}, el("span", {class: "phase"}, one.phase),
         el("span",
            {class: "id", title: `${one.id}${one.session ? `\nsession ${one.session}` : ""}`},
            one.session || one.id),
         el("span", {class: "dim"}, formatSeconds(one.age_s ?? 0))),
      el("div", {class: "dim"}, `${what}${formatCount(one.n_prompt)} prompt${cached}`),
      ...(prefill ? [progressBar(one.n_done, one.n_prompt, "prompt computed")] : []));
}

function requestList(requests, none) {
  if (requests.length === 0) return el("p", {class: "dim"}, none);
  return el("ul", {class: "requests"}, ...requests.map(requestRow));
}

function treeNode(node, mostHits) {
  return el(
      "li", {}, el("div", {class: "snippet", title: node.text}, node.text),
      progressBar(node.hits, mostHits, "hits"),
      el("div", {class: "dim"}, `${plural(node.tokens, "token")} · ${plural(node.hits, "hit")}`));
}

// What each section shows, from the engine's state.
const sections = {
  throughput(state, history) {
    return [
      el("p", {class: "big"}, formatNumber(state.tokens_per_s ?? 0), el("small", {}, " tokens/s")),
      lineChart(history, kHistory, `Tokens per second over the last ${history.length} seconds`),
      el("p", {class: "axis"}, el("span", {}, "2 minutes ago"), el("span", {}, "now"))
    ];
  },
  steps({step_ms = []}) {
    if (step_ms.length === 0) return [el("p", {class: "dim"}, "No step has run yet.")];
    const words = [
      ["median", quantile(step_ms, 0.5)], ["p99", quantile(step_ms, 0.99)], ["last", step_ms.at(-1)]
    ];
    return [
      el("p", {class: "figures"},
         ...words.map(
             ([name, ms]) => el("span", {}, el("b", {}, formatNumber(ms)), ` ms ${name}`))),
      lineChart(step_ms, 100, `Time of the last ${step_ms.length} steps`),
      el("p", {class: "axis"}, el("span", {}, `last ${plural(step_ms.length, "step")}`),
         el("span", {}, "now"))
    ];
  },
  requests({running = [], waiting = []}) {
    return [
      el("h3", {}, `Running `, el("span", {class: "count"}, running.length)),
      requestList(running, "Nothing is running."),
      el("h3", {}, `Waiting `, el("span", {class: "count"}, waiting.length)),
      requestList(waiting, "Nothing waits.")
    ];
  },
  pages({pages = {}}) {
    const parts = [
      {name: "in use", value: pages.in_use ?? 0}, {name: "cached", value: pages.cached ?? 0},
      {name: "free", value: pages.free ?? 0}
    ];
    return [
      stackedBar(parts, "Pages of the KV cache"), legend(parts),
      el("p", {class: "dim"}, `${plural(pages.total ?? 0, "page")} in all`)
    ];
  },
  hits({hit_rate = {}}) {
    const {tokens_cached: cached = 0, tokens_prompt: prompt = 0} = hit_rate;
    return [
      el("p", {class: "big"}, formatNumber(percent(cached, prompt)),
         el("small", {}, " % of prompt tokens from the cache")),
      progressBar(cached, prompt, "Share of prompt tokens from the cache"),
      el("p", {class: "dim"}, `${formatCount(cached)} of ${formatCount(prompt)} tokens`)
    ];
  },
  tree({tree = {}}) {
    const top = tree.top ?? [];
    const most = Math.max(1, ...top.map((node) => node.hits));
    return [
      el("p", {class: "figures"},
         el("span", {}, el("b", {}, formatCount(tree.nodes ?? 0)), " nodes"),
         el("span", {}, el("b", {}, formatCount(tree.tokens ?? 0)), " tokens"),
         el("span", {}, el("b", {}, formatCount(tree.depth ?? 0)), " deep")),
      el("ol", {class: "tree"}, ...top.map((node) => treeNode(node, most)))
    ];
  },
  about(state) {
    const rows = {
      Model: state.model,
      Fingerprint: state.fingerprint,
      Uptime: formatSeconds(state.uptime_s ?? 0)
    };
    return [el(
        "dl", {},
        ...Object.entries(rows).flatMap(
            ([name, value]) => [el("dt", {}, name), el("dd", {}, value ?? "")]))];
  },
};

export class EngineView {
  #history = [];
  #timer = null;
  #shown = false;

  constructor() {
    document.addEventListener("visibilitychange", () => this.#resume());
    byId("engine-key").addEventListener("click", async () => {
      if (await renewKey()) this.#resume();
    });
  }

  // Polls from now on, or no longer.
  setShown(shown) {
    this.#shown = shown;
    this.#resume();
  }

  #resume() {
    clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#shown && !document.hidden) this.#poll();
  }

  async #poll() {
    const timer = (this.#timer = setTimeout(() => {}, 0));
    const again = await this.#ask();
    // Hidden or resumed meanwhile: another poll took over, or none should.
    if (timer !== this.#timer || !again) return;
    this.#timer = setTimeout(() => this.#poll(), kPoll_ms);
  }

  // False: asking again would get the same refusal.
  async #ask() {
    try {
      const response = await request("/debug/engine", {ask: false});
      this.#draw(await response.json());
      return true;
    } catch (error) {
      this.#explain(error);
      return !(error.status in kRefusals);
    }
  }

  #explain({status, message}) {
    byId("engine-note").textContent = kRefusals[status] ?? message;
    byId("engine-note").hidden = false;
    byId("engine-key").hidden = status !== 401 && status !== 403;
    byId("engine-live").hidden = true;
  }

  #draw(state) {
    byId("engine-note").hidden = true;
    byId("engine-key").hidden = true;
    byId("engine-live").hidden = false;
    this.#history = [...this.#history, state.tokens_per_s ?? 0].slice(-kHistory);
    for (const [name, content] of Object.entries(sections))
      byId(`engine-${name}`).replaceChildren(...content(state, this.#history));
  }
}
