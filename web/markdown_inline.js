// What stands inside a line of Markdown: emphasis, code, links, line breaks. One pass over the text
// with a stack of what is open; a mark that is never closed is text. See markdown.js for what is
// not passed through.
import {el} from "./dom.js";

const kMaxOpen = 24;  // elements inside each other; more marks are text
const kMaxRun = 6;    // a longer row of asterisks is text

const kPlain = /[^\\`*_~[\]!<\nh]+/y;
// (address "title"), the address in angle brackets or with at most one level of brackets inside.
const kInAngles = /<([^<>\n]{0,2000})>/.source;
const kAddress = /((?:[^\s()<>]|\([^\s()<>]{0,500}\)){0,2000})/.source;
const kTitle = /(?:\s{1,9}["'(][^"'()\n]{0,500}["')])?/.source;
const kDestination = new RegExp(`\\(\\s{0,9}(?:${kInAngles}|${kAddress})${kTitle}\\s{0,9}\\)`, "y");
const kUrl = /https?:\/\/[^\s<>"`[\]]+/y;
const kAngleUrl = /<(https?:\/\/[^\s<>]{1,2000})>/y;
const kBreak = /<br\s{0,3}\/?>/iy;
const kSpace = /\s/;
const kVisible = /\S/;
const kPunctuation = /[\p{P}\p{S}]/u;
// Backslashes before brackets are left, because that is how formulas begin: \( \[.
const kEscaped = /[!"#$%&'*+,\-./:;<=>?@\\^_`{|}~]/;

function at(pattern, text, i) {
  pattern.lastIndex = i;
  return pattern.exec(text);
}

// The address where it is one that a click may open.
function safeUrl(text) {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}

// One by one, because a call takes only so many arguments.
function into(parent, nodes) {
  for (const node of nodes) parent.append(node);
  return parent;
}

function link(href, nodes) {
  return into(
      el("a", {href, title: href, target: "_blank", rel: "noopener noreferrer nofollow"}), nodes);
}

class Parser {
  constructor(text) {
    this.text = text;
    this.i = 0;
    this.open = [{mark: "", nodes: []}];  // what is open, the innermost last
    this.ticks = new Map();  // length of a run of backticks -> where such runs are, first one last
    for (const run of [...text.matchAll(/`+/g)].reverse()) {
      const n = run[0].length;
      this.ticks.get(n)?.push(run.index) ?? this.ticks.set(n, [run.index]);
    }
  }

  add(node) {
    const nodes = this.open.at(-1).nodes;
    if (typeof node === "string" && typeof nodes.at(-1) === "string")
      nodes[nodes.length - 1] += node;
    else
      nodes.push(node);
  }

  // Takes what was opened after frame `n` for text.
  collapse(n) {
    while (this.open.length > n + 1) {
      const frame = this.open.pop();
      this.add(frame.mark === "[" ? frame.text : frame.mark.repeat(frame.count));
      for (const node of frame.nodes) this.add(node);
      if (frame.hasLink) this.open.at(-1).hasLink = true;
    }
  }

  run() {
    const text = this.text;
    while (this.i < text.length) {
      const plain = at(kPlain, text, this.i);
      if (plain) {
        this.add(plain[0]);
        this.i += plain[0].length;
      } else {
        this.special(text[this.i]);
      }
    }
    this.collapse(0);
    return into(document.createDocumentFragment(), this.open[0].nodes);
  }

  special(c) {
    if (c === "\\")
      this.escape();
    else if (c === "`")
      this.code();
    else if (c === "*" || c === "_" || c === "~")
      this.emphasis(c);
    else if (c === "[")
      this.openBracket(c);
    else if (c === "!" && this.text[this.i + 1] === "[")
      this.openBracket("![");
    else if (c === "]")
      this.closeBracket();
    else if (c === "\n")
      this.newline();
    else if (!this.address(c))
      this.literal(c);
  }

  literal(text) {
    this.add(text);
    this.i += text.length;
  }

  escape() {
    const next = this.text[this.i + 1];
    if (next === "\n") {
      this.i++;
    } else if (next !== undefined && kEscaped.test(next)) {
      this.add(next);
      this.i += 2;
    } else {
      this.literal("\\");
    }
  }

  newline() {
    this.add(el("br"));
    this.i++;
    while (this.text[this.i] === " ") this.i++;
  }

  code() {
    let n = 1;
    while (this.text[this.i + n] === "`") n++;
    const runs = this.ticks.get(n);
    while (runs.length > 0 && runs.at(-1) <= this.i) runs.pop();
    if (runs.length === 0) return this.literal("`".repeat(n));
    const end = runs.at(-1);
    let text = this.text.slice(this.i + n, end).replaceAll("\n", " ");
    if (text.startsWith(" ") && text.endsWith(" ") && kVisible.test(text)) text = text.slice(1, -1);
    this.add(el("code", {}, text));
    this.i = end + n;
  }

  emphasis(c) {
    let n = 1;
    while (this.text[this.i + n] === c) n++;
    const before = this.text[this.i - 1] ?? " ";
    const after = this.text[this.i + n] ?? " ";
    this.i += n;
    if (n > kMaxRun || (c === "~" && n !== 2)) return this.add(c.repeat(n));
    const spaceBefore = kSpace.test(before), spaceAfter = kSpace.test(after);
    const markBefore = kPunctuation.test(before), markAfter = kPunctuation.test(after);
    const left = !spaceAfter && (!markAfter || spaceBefore || markBefore);
    const right = !spaceBefore && (!markBefore || spaceAfter || markAfter);
    const opens = c === "_" ? left && (!right || markBefore) : left;
    const closes = c === "_" ? right && (!left || markAfter) : right;
    const rest = closes ? this.close(c, n, opens) : n;
    if (rest === 0) return;
    if (opens && this.open.length < kMaxOpen)
      this.open.push({mark: c, count: rest, n, closes, nodes: []});
    else
      this.add(c.repeat(rest));
  }

  // The innermost opening that a run of `n` closes; links bound it.
  opening(c, n, opens) {
    for (let k = this.open.length - 1; k > 0 && this.open[k].mark !== "["; k--) {
      const frame = this.open[k];
      if (frame.mark !== c) continue;
      // CommonMark's rule of three, for runs that could be either end.
      const either = opens || frame.closes;
      if (!either || (frame.n + n) % 3 !== 0 || (frame.n % 3 === 0 && n % 3 === 0)) return k;
    }
    return 0;
  }

  // Closes what it can; returns what is left of the run.
  close(c, n, opens) {
    let rest = n;
    for (let k; rest > 0 && (k = this.opening(c, n, opens)) > 0;) {
      this.collapse(k);
      const frame = this.open[k];
      const used = Math.min(rest, frame.count, 2);
      const node = into(el(c === "~" ? "del" : used === 2 ? "strong" : "em"), frame.nodes);
      frame.count -= used;
      rest -= used;
      frame.nodes = [node];
      if (frame.count > 0) continue;
      this.open.pop();
      this.add(node);
      if (frame.hasLink) this.open.at(-1).hasLink = true;
    }
    return rest;
  }

  openBracket(text) {
    if (this.open.length >= kMaxOpen) return this.literal(text);
    this.open.push({mark: "[", text, nodes: []});
    this.i += text.length;
  }

  closeBracket() {
    let k = this.open.length - 1;
    while (k > 0 && this.open[k].mark !== "[") k--;
    const destination = k > 0 && at(kDestination, this.text, this.i + 1);
    if (!destination) {
      if (k > 0) this.collapse(k - 1);
      return this.literal("]");
    }
    this.collapse(k);
    const frame = this.open.pop();
    const href = !frame.hasLink && safeUrl(destination[1] ?? destination[2]);
    if (href)
      this.add(link(href, frame.nodes.length ? frame.nodes : [href]));
    else
      for (const node of frame.nodes) this.add(node);
    if (href || frame.hasLink) this.open.at(-1).hasLink = true;
    this.i += 1 + destination[0].length;
  }

  // A bare address, one in angle brackets, or the one tag that is known: <br>, for lines in table
  // cells.
  address(c) {
    if (c === "<") {
      const found = at(kBreak, this.text, this.i) ?? at(kAngleUrl, this.text, this.i);
      const href = found?.[1] && safeUrl(found[1]);
      if (!found || (found[1] && !href)) return false;
      this.add(href ? link(href, [found[1]]) : el("br"));
      if (href) this.open.at(-1).hasLink = true;
      this.i += found[0].length;
      return true;
    }
    const before = this.text[this.i - 1];
    if (c !== "h" || (before !== undefined && /[\p{L}\p{N}]/u.test(before))) return false;
    const found = at(kUrl, this.text, this.i)?.[0];
    if (!found) return false;
    let url = found.replace(/[.,;:!?'*_~\]}]{1,20}$/, "");
    if (url.endsWith(")") && !url.includes("(")) url = url.slice(0, -1);
    const href = safeUrl(url);
    if (!href) return false;
    this.add(link(href, [url]));
    this.open.at(-1).hasLink = true;
    this.i += url.length;
    return true;
  }
}

export function inline(text) { return new Parser(text).run(); }
