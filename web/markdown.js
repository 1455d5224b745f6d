// Markdown as DOM nodes: the part of CommonMark and GitHub's tables that models write. No HTML
// passes through and nothing is loaded: text becomes text nodes, images become links, links are
// http(s) only. Every scan is linear in its text and nesting is bounded, because what a model
// writes can be hostile.
import {el, icon} from "./dom.js";
import {inline} from "./markdown_inline.js";

const kMaxDepth = 12;  // of quotes and lists; deeper ones are shown as text

const kMaxIndent = 100;  // characters; nothing begins deeper

const kFence = /^[ \t]{0,99}(`{3,}|~{3,})[ \t]*([^\s`]*)/;
const kHeading = /^ {0,3}(#{1,6})(?:[ \t]|$)/;
const kRule = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const kQuote = /^ {0,3}> ?/;
const kItem = /^([ \t]{0,99})([-*+]|(\d{1,9})[.)])(?:([ \t]+)(?=\S)|\s*$)/;

const isBlank = (line) => !/\S/.test(line);

// Columns of white space at a line's beginning, as far as they matter; a tab is four.
function indentOf(line) {
  let n = 0;
  for (let i = 0; i < kMaxIndent && (line[i] === " " || line[i] === "\t"); i++)
    n += line[i] === "\t" ? 4 : 1;
  return n;
}

// The line less as many columns of white space, or all that it has.
function outdent(line, columns) {
  let i = 0;
  for (; columns > 0 && (line[i] === " " || line[i] === "\t"); i++)
    columns -= line[i] === "\t" ? 4 : 1;
  return line.slice(i);
}

function fenceOf(line) {
  const match = kFence.exec(line);
  // A backtick after the opening run makes it a code span.
  if (!match || (match[1][0] === "`" && line.includes("`", match[0].length))) return null;
  return {indent: indentOf(line), mark: match[1], language: match[2]};
}

function closesFence(line, mark) {
  const text = line.trim();
  return text.length >= mark.length && text === mark[0].repeat(text.length);
}

function splitCells(line) {
  const cells = [""];
  const text = line.trim().replace(/^\|/, "");
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "\\" && text[i + 1] === "|")
      cells[cells.length - 1] += text[++i];
    else if (text[i] === "|")
      cells.push("");
    else
      cells[cells.length - 1] += text[i];
  }
  if (cells.length > 1 && isBlank(cells.at(-1))) cells.pop();
  return cells.map((cell) => cell.trim());
}

// The alignments that the row under a table's head gives, or null where there is no table.
function tableAt(lines, i) {
  const under = lines[i + 1];
  if (!lines[i].includes("|") || under === undefined || !under.includes("-") ||
      !/^[\s|:-]+$/.test(under))
    return null;
  const marks = splitCells(under);
  if (!marks.every((mark) => /^:?-+:?$/.test(mark)) || marks.length !== splitCells(lines[i]).length)
    return null;
  return marks.map((m) => (m.endsWith(":") ? (m.startsWith(":") ? "center" : "end") : "start"));
}

// What begins at line i, apart from a paragraph.
function opener(lines, i, depth, inParagraph) {
  const line = lines[i];
  const fence = fenceOf(line);
  if (fence) return {type: "code", ...fence};
  const heading = kHeading.exec(line);
  if (heading) return {type: "heading", level: heading[1].length};
  if (kRule.test(line)) return {type: "rule"};
  const aligns = tableAt(lines, i);
  if (aligns) return {type: "table", aligns};
  if (depth >= kMaxDepth) return null;
  if (kQuote.test(line)) return {type: "quote"};
  const item = kItem.exec(line);
  if (!item) return null;
  // In a paragraph a line such as "1984. A novel" is more likely text.
  if (inParagraph && (item[4] === undefined || (item[3] !== undefined && item[3] !== "1")))
    return null;
  return {type: "list", ordered: item[3] !== undefined, start: item[3], indent: indentOf(line)};
}

// Each reads one block that begins at line i, fills it in and returns the line after it.
const readers = {
  code(block, lines, i) {
    const body = [];
    for (i++; i < lines.length && !closesFence(lines[i], block.mark); i++)
      body.push(outdent(lines[i], block.indent));
    block.text = body.join("\n");
    return Math.min(i + 1, lines.length);
  },
  heading(block, lines, i) {
    block.text = lines[i].trim().slice(block.level).trim().replace(/(?:^|[ \t])#+$/, "");
    return i + 1;
  },
  rule: (block, lines, i) => i + 1,
  table(block, lines, i) {
    block.rows = [splitCells(lines[i])];
    for (i += 2; i < lines.length && lines[i].includes("|"); i++)
      block.rows.push(splitCells(lines[i]).slice(0, block.aligns.length));
    return i;
  },
  quote(block, lines, i, depth) {
    const inner = [];
    for (; i < lines.length && kQuote.test(lines[i]); i++) inner.push(lines[i].replace(kQuote, ""));
    block.blocks = parse(inner, depth + 1);
    return i;
  },
  list(block, lines, i, depth) {
    block.items = [];
    for (let item; i < lines.length && (item = itemOf(block, lines[i]));)
      i = readItem(block, item, lines, i, depth);
    return i;
  },
  paragraph(block, lines, i, depth) {
    const from = i++;
    while (i < lines.length && !isBlank(lines[i]) && !opener(lines, i, depth, true)) i++;
    block.text = lines.slice(from, i).map((line) => line.trimStart()).join("\n").trimEnd();
    return i;
  },
};

// The beginning of another item of this list.
function itemOf(list, line) {
  const item = kItem.exec(line);
  const fits =
      item && (item[3] !== undefined) === list.ordered && indentOf(line) <= list.indent + 1;
  return fits && !kRule.test(line) ? item : null;
}

// One item and what is indented under it. Models indent by two under "1.", where the letter of
// CommonMark asks for three, so two are enough.
function readItem(list, item, lines, i, depth) {
  const base = indentOf(lines[i]);
  const gap = item[4]?.length ?? 1;
  const width = base + item[2].length + (gap > 4 ? 1 : gap);
  const inner = [lines[i].slice(item[0].length)];
  for (i++; i < lines.length; i++) {
    const line = lines[i];
    if (isBlank(line)) {
      let next = i + 1;
      while (next < lines.length && isBlank(lines[next])) next++;
      const goesOn = next < lines.length && indentOf(lines[next]) >= base + 2;
      if (!goesOn) {
        if (next < lines.length && itemOf(list, lines[next])) {
          list.loose = true;
          i = next;
        }
        break;
      }
      for (; i < next; i++) inner.push("");
      i--;
    } else if (indentOf(line) >= base + 2) {
      inner.push(outdent(line, width));
    } else if (isBlank(lines[i - 1]) || kItem.test(line) || opener(lines, i, depth, true)) {
      break;
    } else {
      inner.push(line);
    }
  }
  const blocks = parse(inner, depth + 1);
  if (blocks.filter((block) => block.type === "paragraph").length > 1) list.loose = true;
  list.items.push(blocks);
  return i;
}

// The blocks of these lines; each knows its lines as [from, to).
function parse(lines, depth) {
  const blocks = [];
  for (let i = 0; i < lines.length;) {
    if (isBlank(lines[i])) {
      i++;
      continue;
    }
    const block = opener(lines, i, depth, false) ?? {type: "paragraph"};
    block.from = i;
    block.to = readers[block.type](block, lines, i, depth);
    i = Math.max(i + 1, block.to);
    blocks.push(block);
  }
  return blocks;
}

const kTask = /^\[([ xX])\] /;

function buildItem(blocks, loose) {
  const item = el("li");
  blocks.forEach((block, i) => {
    if (block.type !== "paragraph") return item.append(build(block));
    const task = i === 0 && kTask.exec(block.text);
    const content = inline(task ? block.text.slice(4) : block.text);
    if (task) {
      item.className = "task";
      content.prepend(task[1] === " " ? "☐ " : "☑ ");
    }
    item.append(loose ? el("p", {}, content) : content);
  });
  return item;
}

const builders = {
  paragraph: (block) => el("p", {}, inline(block.text)),
  // The page's own headings are h1 and h2.
  heading: (block) =>
      el(`h${Math.min(block.level + 2, 6)}`, {class: `h${block.level}`}, inline(block.text)),
  rule: () => el("hr"),
  quote: (block) => el("blockquote", {}, ...block.blocks.map(build)),
  list: (block) => el(
      block.ordered ? "ol" : "ul", block.ordered && block.start !== "1" ? {start: block.start} : {},
      ...block.items.map((item) => buildItem(item, block.loose))),
  table(block) {
    const row = (cells, tag) =>
        el("tr", {}, ...cells.map((cell, i) => el(tag, {class: block.aligns[i]}, inline(cell))));
    const [head, ...body] = block.rows;
    return el(
        "div", {class: "table", tabindex: "0", role: "group", "aria-label": "Table"},
        el("table", {}, el("thead", {}, row(head, "th")),
           el("tbody", {}, ...body.map((cells) => row(cells, "td")))));
  },
  code: (block) =>
      el("figure", {class: "code"},
         el("figcaption", {}, el("span", {}, block.language || "text"),
            el("button", {type: "button", class: "quiet copy", "aria-label": "Copy code"},
               icon("copy"), "Copy")),
         el("pre", {tabindex: "0"}, el("code", {}, document.createTextNode(block.text)))),
};

const build = (block) => builders[block.type](block);

// Shows a text that grows. What can no longer change is left alone, so that a long answer costs no
// more per token than a short one: only the last two blocks are parsed again. Two, because a
// block's kind is settled by its first two lines, and those are whole once another block follows.
export class MarkdownView {
  #settled = 0;  // characters of the text whose nodes are final
  #tail = [];    // {source, type, node} of the blocks after them

  constructor(root) { this.root = root; }

  // `text` begins with what was shown before.
  update(text) {
    const lines = text.slice(this.#settled).split("\n");
    const blocks = parse(lines.map((line) => line.replace(/\r$/, "")), 0);
    const tail = blocks.map((block, i) => this.#place(block, this.#tail[i], lines));
    for (const old of this.#tail.slice(tail.length)) old.node.remove();
    this.#tail = tail;
    if (blocks.length > 2) {
      this.#settle(lines, blocks.at(-2).from);
      this.#tail = tail.slice(-2);
    }
  }

  #settle(lines, n_lines) {
    for (const line of lines.slice(0, n_lines)) this.#settled += line.length + 1;
  }

  #place(block, old, lines) {
    const source = lines.slice(block.from, block.to).join("\n");
    if (old?.source === source && old.type === block.type) return old;
    if (old?.type === "code" && block.type === "code" && old.mark === lines[block.from]) {
      grow(old.node.querySelector("code").firstChild, block.text);
      return {...old, source};
    }
    const node = build(block);
    if (old)
      old.node.replaceWith(node);
    else
      this.root.append(node);
    return {source, type: block.type, mark: lines[block.from], node};
  }
}

// Sets a text node's text; where it only grows, what is there keeps its layout and selection.
export function grow(node, text) {
  if (text.startsWith(node.data))
    node.appendData(text.slice(node.data.length));
  else
    node.data = text;
}
