// What the views are made of: badges, links to records, tables, pages of lists. Texts from the
// database only ever become text nodes.
import {get} from "./data.js";
import {announce, el, formatCount, formatNumber} from "./dom.js";

const kTones = {
  supported: "good",
  done: "good",
  live: "good",
  published: "good",
  ok: "good",
  refuted: "bad",
  contradicted: "bad",
  failed: "bad",
  critical: "bad",
  missing: "bad",
  changed: "bad",
  running: "warm",
  testing: "warm",
  warning: "warm",
  interrupted: "warm",
  stale: "warm",
  retracted: "warm",
  undecided: "plain",
  open: "plain",
  draft: "plain",
  info: "plain",
};

export const badge = (text, tone) =>
    el("span", {class: `badge ${tone ?? kTones[text] ?? "plain"}`}, text || "none");

const kViews = {
  run: "run",
  hyp: "hyp",
  post: "post"
};

// "run:12" as a link to where it is shown; other records lead to their place in the graph.
export function ref(id, text = id) {
  if (!id) return null;
  const [kind, number] = String(id).split(":");
  if (!/^[a-z]+$/.test(kind) || !/^\d+$/.test(number ?? "")) return el("span", {}, text);
  const to = kViews[kind] ? `#/${kViews[kind]}/${number}` : `#/graph/${kind}:${number}`;
  return el("a", {href: to, class: "ref"}, text);
}

// A time as a reader wants it: today's without the day.
export function when(iso) {
  if (!iso) return "";
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return el("span", {}, iso);
  const isToday = iso.slice(0, 10) === new Date().toISOString().slice(0, 10);
  const text = isToday ? `today ${iso.slice(11, 16)}` : iso.slice(0, 16).replace("T", " ");
  return el("time", {datetime: iso, title: `${iso} (${ago(date)})`}, text);
}

export function ago(date) {
  const s = Math.max(0, (Date.now() - date.getTime()) / 1000);
  if (s < 60) return "just now";
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

export const bytes = (n) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    ++i;
  }
  return `${formatNumber(n)} ${units[i]}`;
};

export const value = (x, unit = "") =>
    x === null || x === undefined ? "–" : `${formatNumber(x)}${unit ? ` ${unit}` : ""}`;

export const percent = (x) => (x === null || x === undefined ? "–" : `${formatNumber(x)} %`);

// columns: [{head, cell(row), class, title}]. Rows that `open` leads to can be opened by key too.
export function table(columns, rows, {caption, empty = "Nothing yet.", rowClass} = {}) {
  if (rows.length === 0) return el("p", {class: "empty"}, empty);
  const head = columns.map(
      (column) => el("th", {scope: "col", class: column.class, title: column.title}, column.head));
  const body = rows.map(
      (row) =>
          el("tr", {class: rowClass?.(row)},
             ...columns.map((column) => el("td", {class: column.class}, column.cell(row)))));
  return el(
      "div", {class: "table", tabindex: "0", role: "region", "aria-label": caption},
      el("table", {}, caption ? el("caption", {class: "unseen"}, caption) : null,
         el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body)));
}

// A list that the server gives a page at a time. show(items) makes the nodes.
export function pager(path, params, show) {
  const box = el("div", {class: "pager"});
  const starts = [0];  // where each page begins, so that one can go back
  let at = 0;
  const go = async (place) => {
    at = place;
    box.setAttribute("aria-busy", "true");
    const page = await get(path, {...params, before: starts[at] || ""});
    if (page.next) starts[at + 1] = page.next;
    const turn = (to, text, enabled) =>
        el("button", {type: "button", disabled: !enabled, onclick: () => go(to).catch(failed(box))},
           text);
    const buttons = at > 0 || page.next ?
        el("nav", {class: "row pages", "aria-label": "Pages"}, turn(at - 1, "Newer", at > 0),
           el("span", {class: "dim"}, `page ${at + 1}`),
           turn(at + 1, "Older", Boolean(page.next))) :
        null;
    box.replaceChildren(...[show(page.items), buttons].flat().filter(Boolean));
    box.removeAttribute("aria-busy");
    if (at !== 0 || starts.length > 1) announce(`Page ${at + 1}`);
  };
  box.refresh = () => (at === 0 ? go(0).catch(failed(box)) : Promise.resolve());
  box.ready = go(0);
  return box;
}

export const failed = (box) => (error) => box.replaceChildren(trouble(error));

export function trouble(error) {
  return el(
      "div", {class: "trouble", role: "alert"}, el("strong", {}, "This cannot be shown. "),
      error.message);
}

export const section = (title, ...children) =>
    el("section", {class: "card"}, el("h2", {}, title), ...children);

// [["name", node or text], ...]
export const facts = (pairs) =>
    el("dl", {class: "facts"},
       ...pairs.filter(([, what]) => what !== null && what !== undefined && what !== "")
           .map(([name, what]) => el("div", {}, el("dt", {}, name), el("dd", {}, what))));

export function field(label, control) {
  control.id ||= `f-${label.toLowerCase().replace(/\W+/g, "-")}`;
  return el("div", {class: "filter"}, el("label", {for: control.id
            }, label), control);
}

export function select(options, chosen, onchange) {
  const box = el("select", {onchange: () => onchange(box.value)});
  for (const [key, text] of options) box.append(el("option", {value: key}, text));
  box.value = chosen;
  return box;
}

export function input(text, placeholder, onchange) {
  const box = el("input", {type: "search", placeholder, spellcheck: "false", autocomplete: "off"});
  box.value = text;
  let timer;
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => onchange(box.value.trim()), 250);
  });
  return box;
}

// "576 cases": the word in the number that fits.
export const plural = (n, word) => `${formatCount(n)} ${word}${n === 1 ? "" : "s"}`;
