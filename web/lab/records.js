// Learnings, the running log, and posts.
import {get} from "./data.js";
import {el} from "./dom.js";
import {learningCard} from "./experiments.js";
import {MarkdownView} from "./markdown.js";
import {eventList} from "./now.js";
import {badge, pager, ref, section, table, value, when} from "./parts.js";

export async function learnings(view) {
  const list = pager(
      "learnings", {limit: 25},
      (items) => (
          items.length ?
              el("ul", {class: "list"}, ...items.map(learningCard)) :
              el("p", {class: "empty"},
                 "Nothing was learned yet: 'millrace lab learn HYP TEXT' keeps what a verdict taught.")));
  view.append(section(
      "Learnings",
      el("p", {class: "dim"},
         "A learning goes stale when the hardware, the driver, the toolkit or the op's source changes."),
      list));
  await list.ready;
  return {log: list.refresh};
}

export async function log(view) {
  const list = pager("events", {limit: 100}, eventList);
  view.append(section(
      "Log",
      el("p", {class: "dim"},
         "Everything that was written, newest first. Nothing here is ever changed or deleted."),
      list));
  await list.ready;
  return {log: list.refresh};
}

export async function posts(view) {
  const list = pager(
      "posts", {limit: 25},
      (items) => table(
          [
            {head: "Post", cell: (p) => el("a", {href: `#/post/${p.id.split(":")[1]}`}, p.title)},
            {head: "State", cell: (p) => badge(p.state)},
            {head: "Short name", cell: (p) => el("span", {class: "mono"}, p.slug)},
            {head: "Written", cell: (p) => when(p.created)}
          ],
          items, {caption: "Posts", empty: "No posts yet."}));
  view.append(section("Posts", list));
  await list.ready;
  return {log: list.refresh};
}

// Front matter is for other programs.
const withoutFrontMatter = (text) => text.replace(/^---\n[\s\S]*?\n---\n/, "");

export async function post(view, id) {
  const p = await get(`post/${id}`);
  const body = el("div", {class: "markdown"});
  new MarkdownView(body).update(withoutFrontMatter(p.body));
  view.append(
      el("div", {class: "title"}, el("h2", {}, p.title), badge(p.state),
         el("span", {class: "dim"}, when(p.created))),
      p.state === "retracted" ? el("p", {class: "trouble"}, "This post was retracted.") : "",
      section("Text", body),
      section(
          "Claims",
          table(
              [
                {head: "Claim", cell: (c) => el("span", {class: "text"}, c.text)},
                {head: "Says", class: "number", cell: (c) => value(c.value, c.unit)},
                {head: "Now", class: "number", cell: (c) => value(c.value_now, c.unit)},
                {head: "Status", cell: (c) => badge(c.status)},
                {head: "Run", cell: (c) => ref(c.run)}, {
                  head: "Trouble",
                  cell:
                      (c) => [c.problem, c.stale && `stale: ${c.stale}`].filter(Boolean).join("; ")
                }
              ],
              p.claims, {caption: "Claims", empty: "It claims no number."})));
  return {};
}
