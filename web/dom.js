// The page is built with these alone. Text only ever becomes text nodes, so nothing a model or a
// tool wrote can turn into markup.

// el("a", { class: "x", onclick: f, hidden: true }, "text", node, null)
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on"))
      node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

export const byId = (id) => document.getElementById(id);

export function icon(name) {
  return svg("svg", {class: "icon", "aria-hidden": "true"}, svg("use", {href: `#i-${name}`}));
}

export function iconButton(name, label, onclick) {
  return el(
      "button", {type: "button", class: "quiet", title: label, "aria-label": label, onclick},
      icon(name));
}

// Says something to a screen reader; nothing is seen.
export function announce(text) { byId("status").textContent = text; }

let toastTimer;
// A short message at the bottom, with at most one thing to do about it.
export function toast(text, action, act) {
  const box = byId("toast");
  const close = () => (box.hidden = true);
  const button = action && el("button", {type: "button", onclick: () => (close(), act())}, action);
  box.replaceChildren(el("span", {}, text), ...(button ? [button] : []));
  box.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(close, action ? 8000 : 3500);
}

// The clipboard is there only over HTTPS and on this machine; elsewhere a selection is copied.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const box = el("textarea", {class: "unseen", readonly: true});
    box.value = text;
    const focused = document.activeElement;
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
    focused?.focus();
  }
  announce("Copied");
}

const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const short = new Intl.NumberFormat("en", {maximumSignificantDigits: 3});

export const formatCount = (n) => whole.format(n);
export const formatNumber = (x) => (Math.abs(x) >= 100 ? whole : short).format(x);

export function formatSeconds(s) {
  if (s < 1) return `${formatNumber(s * 1000)} ms`;
  if (s < 60) return `${formatNumber(s)} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(s % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` :
                      `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
