// The knowledge graph to walk through: the record in the middle, what leads to it at the left, what
// it leads to at the right. Arrow keys go along the edges; the same edges are a list below.
import {get} from "./data.js";
import {announce, el, svg} from "./dom.js";
import {badge, ref, section, table} from "./parts.js";

const kBox = {
  width: 216,
  height: 62
},
      kGap = {
        x: 92,
        y: 18
      };
const kKinds = {
  hyp: "hypothesis",
  exp: "experiment",
  verdict: "verdict",
  learn: "learning",
  post: "post",
  claim: "claim",
  run: "run"
};

const cut = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);
// Two lines, broken between words where that is possible.
function wrap(text, n) {
  if (text.length <= n) return [text, ""];
  const space = text.lastIndexOf(" ", n);
  const at = space > n / 2 ? space : n;
  return [text.slice(0, at), cut(text.slice(at).trim(), n)];
}
const kindOf = (id) => id.split(":")[0];

// Each node's distance from the one in the middle, along the edges' direction: negative before it.
function layers(graph, center) {
  const at = new Map([[center, 0]]);
  const front = [center];
  while (front.length > 0) {
    const node = front.shift();
    for (const edge of graph.edges) {
      const next = edge.from === node ? edge.to : edge.to === node ? edge.from : null;
      if (next === null || at.has(next)) continue;
      at.set(next, at.get(node) + (edge.from === node ? 1 : -1));
      front.push(next);
    }
  }
  return at;
}

function place(graph, center) {
  const columns = new Map();
  for (const [node, x] of layers(graph, center)) {
    if (Math.abs(x) > 2) continue;
    if (!columns.has(x)) columns.set(x, []);
    columns.get(x).push(node);
  }
  const xs = [...columns.keys()].sort((a, b) => a - b);
  const most = Math.max(...[...columns.values()].map((list) => list.length));
  const height = most * (kBox.height + kGap.y) + kGap.y;
  const places = new Map();
  xs.forEach((x, column) => {
    const list = columns.get(x);
    const top = (height - list.length * (kBox.height + kGap.y)) / 2 + kGap.y / 2;
    list.forEach(
        (node, i) => places.set(
            node, {x: column * (kBox.width + kGap.x) + 8, y: top + i * (kBox.height + kGap.y)}));
  });
  return {places, width: xs.length * (kBox.width + kGap.x) - kGap.x + 16, height};
}

function edgePath(a, b) {
  const forward = b.x >= a.x;
  const x1 = forward ? a.x + kBox.width : a.x, x2 = forward ? b.x : b.x + kBox.width;
  const y1 = a.y + kBox.height / 2, y2 = b.y + kBox.height / 2;
  if (a.x === b.x)
    return {
      d: `M ${a.x + kBox.width} ${y1} C ${a.x + kBox.width + 50} ${y1} ${a.x + kBox.width + 50} ${
          y2} ${a.x + kBox.width} ${y2}`,
      x: a.x + kBox.width + 38,
      y: (y1 + y2) / 2
    };
  const bend = forward ? 40 : -40;
  return {
    d: `M ${x1} ${y1} C ${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`,
    x: (x1 + x2) / 2,
    y: (y1 + y2) / 2 - 5
  };
}

function drawNode(node, place, center, go) {
  const kind = kindOf(node.id);
  const label = `${kKinds[kind] ?? kind} ${node.id}, ${node.status || "no status"}: ${node.text}`;
  const lines = wrap(node.text, 33);
  return svg(
      "g", {
        class: `node kind-${kind}${node.id === center ? " center" : ""}`,
        transform: `translate(${place.x} ${place.y})`,
        tabindex: node.id === center ? 0 : -1,
        role: "link",
        "aria-label": label,
        "data-id": node.id,
        onclick: () => go(node.id),
        onkeydown: (event) => (event.key === "Enter" ? go(node.id) : null)
      },
      svg("title", {}, label), svg("rect", {width: kBox.width, height: kBox.height, rx: 8}),
      svg("text", {x: 10, y: 18, class: "id"}, node.id),
      svg("text", {x: kBox.width - 10, y: 18, class: "state"}, cut(node.status, 22)),
      svg("text", {x: 10, y: 36}, lines[0]), svg("text", {x: 10, y: 52}, lines[1]));
}

// Where an arrow key leads from a node: the nearest one that way.
function neighbour(places, from, key) {
  const a = places.get(from);
  const [dx, dy] =
      {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[key] ?? [0, 0];
  let best = null, least = Infinity;
  for (const [node, b] of places) {
    const along = (b.x - a.x) * dx + (b.y - a.y) * dy,
          across = Math.abs((b.x - a.x) * dy) + Math.abs((b.y - a.y) * dx);
    if (node === from || along <= 0) continue;
    const cost = along + 2 * across;
    if (cost < least) [best, least] = [node, cost];
  }
  return best;
}

function draw(graph, center, go) {
  const {places, width, height} = place(graph, center);
  const root = svg("svg", {
    class: "graph",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "group",
    "aria-label": `Records around ${center}; arrow keys walk, Enter goes there`
  });
  root.append(
      svg("defs", {},
          svg("marker", {
            id: "arrow",
            viewBox: "0 0 8 8",
            refX: 7,
            refY: 4,
            markerWidth: 7,
            markerHeight: 7,
            orient: "auto-start-reverse"
          },
              svg("path", {d: "M 0 0 L 8 4 L 0 8 z"}))));
  const shown = graph.edges.filter((edge) => places.has(edge.from) && places.has(edge.to));
  for (const edge of shown) {
    const path = edgePath(places.get(edge.from), places.get(edge.to));
    root.append(svg(
        "g", {class: `edge ${edge.type}`},
        svg("title", {},
            `${edge.from} ${edge.type} ${edge.to}${edge.run ? `, by ${edge.run}` : ""}`),
        svg("path", {d: path.d, "marker-end": "url(#arrow)"}),
        svg("text", {x: path.x, y: path.y}, edge.type.replace("_", " ")),
        edge.run ? svg("text", {x: path.x, y: path.y + 16, class: "run"}, edge.run) : svg("g")));
  }
  for (const node of graph.nodes)
    if (places.has(node.id)) root.append(drawNode(node, places.get(node.id), center, go));
  root.addEventListener("keydown", (event) => {
    const from = document.activeElement?.getAttribute?.("data-id");
    const next = from && neighbour(places, from, event.key);
    if (!next) return;
    event.preventDefault();
    const node = root.querySelector(`[data-id="${CSS.escape(next)}"]`);
    node.setAttribute("tabindex", "0");
    node.focus();
    announce(node.getAttribute("aria-label"));
  });
  return el("div", {class: "graph-frame", tabindex: "-1"}, root);
}

const busiest = (graph) => {
  const degree = new Map();
  for (const edge of graph.edges)
    for (const end of [edge.from, edge.to]) degree.set(end, (degree.get(end) ?? 0) + 1);
  const hypotheses = graph.nodes.filter((node) => kindOf(node.id) === "hyp");
  return hypotheses.sort((a, b) => (degree.get(b.id) ?? 0) - (degree.get(a.id) ?? 0))[0]?.id ??
      graph.nodes[0]?.id;
};

function edgeTable(graph) {
  return table(
      [
        {head: "From", cell: (e) => ref(e.from)},
        {head: "Edge", cell: (e) => e.type.replace("_", " ")}, {head: "To", cell: (e) => ref(e.to)},
        {head: "By", cell: (e) => (e.run ? ref(e.run) : "")}
      ],
      graph.edges, {caption: "Edges", empty: "No edge yet."});
}

export async function show(view, wanted) {
  const around = /^[a-z]+:\d+$/.test(wanted ?? "") ? wanted : "";
  const graph = await get("graph", around ? {around} : {limit: 100});
  if (graph.nodes.length === 0) {
    view.append(section(
        "Graph",
        el("p", {class: "empty"},
           "The graph is empty: hypotheses and what follows from them are its nodes.")));
    return {};
  }
  const center = around || busiest(graph);
  const walked = around ? graph : await get("graph", {around: center});
  const node = walked.nodes.find((one) => one.id === center);
  const go = (id) => (location.hash = `#/graph/${id}`);
  const detail = ["hyp", "run", "post"].includes(kindOf(center)) ?
      el("p", {}, ref(center, `Open ${center}`)) :
      null;
  view.append(
      section(
          "Graph",
          el("p", {class: "dim"}, "Arrow keys walk, Enter or a click puts a record in the middle."),
          el("p", {}, el("strong", {}, center), " ",
             node?.status ?
                 badge(cut(node.status, 60), node.status.startsWith("stale") ? "warm" : undefined) :
                 null,
             " ", el("span", {class: "text"}, node?.text ?? "")),
          detail, draw(walked, center, go)),
      section("As a list", edgeTable(walked), ...(around ? [] : [
                el("h3", {}, "Newest records"),
                table(
                    [
                      {
                        head: "Record",
                        cell: (n) => el("a", {href: `#/graph/${n.id}`, class: "ref"}, n.id)
                      },
                      {head: "Status", cell: (n) => (n.status ? badge(cut(n.status, 40)) : "")},
                      {head: "Text", cell: (n) => el("span", {class: "text"}, n.text)}
                    ],
                    [...graph.nodes].reverse().slice(0, 100), {caption: "Records"})
              ])));
  return {};
}
