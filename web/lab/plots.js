// Plots as plain SVG: a scale for each axis, marks with a title each, and a table of the same
// numbers beside them for those who do not see them. Colours are classes.
import {el, formatNumber, svg} from "./dom.js";

const kWidth = 720, kMargin = {
  left: 56,
  right: 14,
  top: 12,
  bottom: 34
};

const log10 = Math.log10;

// {at(x): place, ticks: [x]} between two values; logarithmic where asked.
function scale(low, high, from, to, isLog) {
  const f = isLog ? log10 : (x) => x;
  const a = f(low), b = f(high) === f(low) ? f(low) + 1 : f(high);
  return {
    at: (x) => from + ((f(x) - a) / (b - a)) * (to - from),
    ticks: isLog ? decades(low, high) : steps(low, high)
  };
}

function decades(low, high) {
  const out = [];
  const many = log10(high / low) > 2.2;
  for (let e = Math.floor(log10(low)); e <= Math.ceil(log10(high)); ++e)
    for (const m of many ? [1] : [1, 2, 5]) {
      const x = m * 10 ** e;
      if (x >= low * 0.999 && x <= high * 1.001) out.push(x);
    }
  return out;
}

function steps(low, high) {
  const raw = (high - low) / 5 || 1;
  const unit = 10 ** Math.floor(log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw);
  const out = [];
  for (let x = Math.ceil(low / step) * step; x <= high + step * 1e-6; x += step) out.push(x);
  return out;
}

function frame(height, label) {
  const root = svg(
      "svg", {class: "plot", viewBox: `0 0 ${kWidth} ${height}`, role: "img", "aria-label": label});
  const box = {
    left: kMargin.left,
    right: kWidth - kMargin.right,
    top: kMargin.top,
    bottom: height - kMargin.bottom
  };
  return {root, box};
}

function axes({root, box}, x, y, names, formatX = formatNumber) {
  for (const tick of y.ticks) {
    const at = y.at(tick).toFixed(1);
    root.append(
        svg("path", {class: "grid", d: `M ${box.left} ${at} H ${box.right}`}),
        svg("text", {x: box.left - 8, y: at, class: "tick end"}, formatNumber(tick)));
  }
  for (const tick of x.ticks) {
    const at = x.at(tick).toFixed(1);
    root.append(
        svg("path", {class: "grid", d: `M ${at} ${box.top} V ${box.bottom}`}),
        svg("text", {x: at, y: box.bottom + 14, class: "tick middle"}, formatX(tick)));
  }
  root.append(
      svg("text", {x: box.right, y: box.bottom + 29, class: "name end"}, names.x),
      svg("text", {x: box.left - 48, y: box.top - 2, class: "name"}, names.y));
}

const marker = (i, x, y) => {
  const [a, b] = [x.toFixed(1), y.toFixed(1)];
  if (i % 3 === 1)
    return svg("rect", {x: (x - 4).toFixed(1), y: (y - 4).toFixed(1), width: 8, height: 8});
  if (i % 3 === 2) return svg("path", {d: `M ${a} ${(y - 5).toFixed(1)} l 5 9 h -10 z`});
  return svg("circle", {cx: a, cy: b, r: 4.5});
};

// Marks told apart by form as well as colour.
function mark(i, x, y, title, href) {
  const shape = marker(i, x, y);
  shape.setAttribute("class", `mark tone-${i % 6}`);
  const named = svg("a", href ? {href, "aria-label": title} : {}, svg("title", {}, title), shape);
  return href ? named : svg("g", {}, svg("title", {}, title), shape);
}

export function legend(names) {
  return el("ul", {class: "legend"}, ...names.map((name, i) => {
    const icon = svg("svg", {viewBox: "0 0 12 12", class: "swatch", "aria-hidden": "true"});
    const shape = marker(i, 6, 6);
    shape.setAttribute("class", `mark tone-${i % 6}`);
    icon.append(shape);
    return el("li", {}, icon, name);
  }));
}

const bounds = (values) => [Math.min(...values), Math.max(...values)];

// points: [{bytes, macs, us, group, title, href}]; roofs: {read_gbps, rates: [{name, gmacs}]}.
// Operations per byte across, operations a second up, both logarithmic: the slope is the memory's.
export function roofline(points, roofs, label) {
  const plotted = points.filter((p) => p.macs > 0 && p.bytes > 0 && p.us > 0)
                      .map((p) => ({...p, x: (2 * p.macs) / p.bytes, y: (2e-3 * p.macs) / p.us}));
  if (plotted.length === 0)
    return el("p", {class: "empty"}, "No measurement here has both bytes and operations.");
  const rates = roofs.rates.filter((rate) => rate.gmacs > 0);
  const top = Math.max(...plotted.map((p) => p.y), ...rates.map((rate) => 2 * rate.gmacs));
  const ridge = roofs.read_gbps > 0 ?
      Math.max(...rates.map((rate) => (2 * rate.gmacs) / roofs.read_gbps), 1) :
      1;
  const [lowX, highX] = bounds([...plotted.map((p) => p.x), ridge * 2]);
  const lowY =
      Math.min(...plotted.map((p) => p.y), roofs.read_gbps > 0 ? lowX * roofs.read_gbps : Infinity);
  const plot = frame(380, label);
  const x = scale(lowX / 1.6, highX * 1.6, plot.box.left, plot.box.right, true);
  const y = scale(lowY / 2, top * 2, plot.box.bottom, plot.box.top, true);
  axes(plot, x, y, {x: "operations per byte", y: "GFLOP/s"});
  const {root} = plot;
  const startX = lowX / 1.6;
  for (const rate of rates) {
    const flops = 2 * rate.gmacs;
    const from = roofs.read_gbps > 0 ? Math.max(startX, flops / roofs.read_gbps) : startX;
    root.append(
        svg("path", {
          class: "roof",
          d: `M ${x.at(from).toFixed(1)} ${y.at(flops).toFixed(1)} H ${plot.box.right}`
        }),
        svg("text",
            {x: plot.box.right - 4, y: (y.at(flops) - 9).toFixed(1), class: "tick end roof-name"},
            `${rate.name} ${formatNumber(flops)} GFLOP/s`));
  }
  if (roofs.read_gbps > 0) {
    const endX = rates.length ? ridge : highX;
    const left = Math.max(startX, lowY / 2 / roofs.read_gbps);
    const middle = Math.sqrt(left * endX);
    root.append(
        svg("path", {
          class: "roof",
          d: `M ${x.at(left).toFixed(1)} ${y.at(left * roofs.read_gbps).toFixed(1)} L ${
              x.at(endX).toFixed(1)} ${y.at(endX * roofs.read_gbps).toFixed(1)}`
        }),
        svg("text", {
          x: (x.at(middle) - 10).toFixed(1),
          y: (y.at(middle * roofs.read_gbps) - 8).toFixed(1),
          class: "tick end roof-name"
        },
            `memory ${formatNumber(roofs.read_gbps)} GB/s`));
  }
  const groups = [...new Set(plotted.map((p) => p.group))].sort();
  for (const p of plotted)
    root.append(mark(
        groups.indexOf(p.group), x.at(p.x), y.at(p.y),
        `${p.title}: ${formatNumber(p.y)} GFLOP/s, ${formatNumber(p.bytes / p.us / 1e3)} GB/s`,
        p.href));
  return el("figure", {class: "figure"}, root, legend(groups));
}

// The same points by bandwidth, a row each, against what the memory gives: for ops that only move
// bytes, which have no place on a roofline.
export function bandwidth(points, roofs, label) {
  const moved = points.filter((p) => p.bytes > 0 && p.us > 0).slice(0, 40);
  if (moved.length === 0) return "";
  const rows = moved.map((p) => ({...p, gbps: p.bytes / p.us / 1e3}));
  const kRow = 20, kName = 250;
  const plot = frame(rows.length * kRow + kMargin.top + kMargin.bottom, label);
  const [low, high] = bounds([...rows.map((p) => p.gbps), roofs.read_gbps || rows[0].gbps]);
  const x = scale(low / 1.3, high * 1.3, kName, plot.box.right, true);
  axes(plot, x, {ticks: [], at: (v) => v}, {x: "GB/s, logarithmic", y: ""});
  if (roofs.read_gbps > 0) {
    const at = x.at(roofs.read_gbps).toFixed(1);
    plot.root.append(
        svg("path", {class: "roof", d: `M ${at} ${plot.box.top} V ${plot.box.bottom}`},
            svg("title", {}, `memory ${formatNumber(roofs.read_gbps)} GB/s`)));
  }
  const groups = [...new Set(rows.map((p) => p.group))].sort();
  rows.forEach((p, r) => {
    const y = kMargin.top + (r + 0.5) * kRow;
    const short = p.short ?? p.title;
    const name = short.length > 40 ? `${short.slice(0, 39)}…` : short;
    plot.root.append(
        svg("text", {x: 0, y, class: "row-name"}, svg("title", {}, p.title), name),
        mark(
            groups.indexOf(p.group), x.at(p.gbps), y, `${p.title}: ${formatNumber(p.gbps)} GB/s`,
            p.href));
  });
  return el("figure", {class: "figure"}, plot.root, legend(groups));
}

// points: [{x: milliseconds, y, lo, hi, title, href}], oldest first.
export function history(points, unit, label) {
  if (points.length === 0) return el("p", {class: "empty"}, "No run measured this.");
  const plot = frame(260, label);
  const [lowY, highY] = bounds(points.flatMap((p) => [p.y, p.lo ?? p.y, p.hi ?? p.y]));
  const room = (highY - lowY || Math.abs(highY) || 1) * 0.12;
  const x = scale(-0.5, points.length - 0.5, plot.box.left, plot.box.right, false);
  const y = scale(Math.max(0, lowY - room), highY + room, plot.box.bottom, plot.box.top, false);
  const every = Math.max(1, Math.ceil(points.length / 6));
  x.ticks = points.map((_, i) => i).filter((i) => i % every === 0);
  axes(plot, x, y, {x: "runs, oldest first", y: unit}, (i) => points[i].short);
  const line = points.map((p, i) => `${x.at(i).toFixed(1)} ${y.at(p.y).toFixed(1)}`).join(" L ");
  plot.root.append(svg("path", {class: "line", d: `M ${line}`}));
  points.forEach((p, i) => {
    if (p.lo !== null && p.hi !== null && p.lo !== undefined)
      plot.root.append(svg("path", {
        class: "whisker",
        d: `M ${x.at(i).toFixed(1)} ${y.at(p.lo).toFixed(1)} V ${y.at(p.hi).toFixed(1)}`
      }));
    plot.root.append(mark(0, x.at(i), y.at(p.y), p.title, p.href));
  });
  return el("figure", {class: "figure"}, plot.root);
}

// rows: [{name, samples, twin, mid}]: every sample is a dot, the median a line; the twin is the
// same thing measured again, so how far it lies apart is noise.
export function strips(rows, unit, label) {
  const all = rows.flatMap((row) => [...row.samples, ...row.twin]);
  if (all.length === 0) return el("p", {class: "empty"}, "No samples.");
  const kRow = 30, kName = 190;
  const height = rows.length * kRow + kMargin.top + kMargin.bottom;
  const plot = frame(height, label);
  plot.box.left = kName;
  const [low, high] = bounds(all);
  const isLog = low > 0 && high / low > 8;
  const room = (high - low || high || 1) * 0.03;
  const x = isLog ? scale(low / 1.1, high * 1.1, kName, plot.box.right, true) :
                    scale(low - room, high + room, kName, plot.box.right, false);
  axes(plot, x, {ticks: [], at: (v) => v}, {x: `${unit}${isLog ? ", logarithmic" : ""}`, y: ""});
  rows.forEach((row, r) => {
    const y = kMargin.top + (r + 0.5) * kRow;
    const name = row.name.length > 30 ? `${row.name.slice(0, 29)}…` : row.name;
    plot.root.append(svg("text", {x: 0, y, class: "row-name"}, svg("title", {}, row.name), name));
    // Spread by turns, not at random, so that the same samples always look the same.
    const dots = (values, tone, dy) => values.map((v, i) => svg("circle", {
                                                    class: `dot tone-${tone}`,
                                                    r: 2.6,
                                                    cx: x.at(v).toFixed(1),
                                                    cy: (y + dy + ((i * 7) % 9) - 4).toFixed(1)
                                                  }));
    plot.root.append(...dots(row.twin, 5, 0), ...dots(row.samples, 0, 0));
    if (row.mid !== undefined)
      plot.root.append(
          svg("path",
              {class: "median", d: `M ${x.at(row.mid).toFixed(1)} ${(y - 11).toFixed(1)} v 22`}));
  });
  return el("figure", {class: "figure"}, plot.root);
}

// parts: [{name, value}]: how a step's time is made up.
export function bars(parts, unit, label) {
  const total = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  const kRow = 24, kName = 190;
  const plot = svg("svg", {
    class: "plot",
    viewBox: `0 0 ${kWidth} ${parts.length * kRow + 4}`,
    role: "img",
    "aria-label": label
  });
  const most = Math.max(...parts.map((part) => part.value), 1e-12);
  parts.forEach((part, i) => {
    const width = ((kWidth - kName - 150) * part.value) / most;
    plot.append(
        svg("text", {x: 0, y: i * kRow + 13, class: "row-name"}, part.name.slice(0, 30)),
        svg("rect", {
          class: "tone-0",
          x: kName,
          y: i * kRow + 4,
          height: kRow - 8,
          width: Math.max(1, width).toFixed(1),
          rx: 2
        }),
        svg("text", {x: (kName + width + 8).toFixed(1), y: i * kRow + 13, class: "tick"},
            `${formatNumber(part.value)} ${unit}, ${formatNumber((100 * part.value) / total)} %`));
  });
  return el("figure", {class: "figure"}, plot);
}

// A small line of the last values, the newest at the right.
export function spark(values, most, label) {
  const root = svg("svg", {
    class: "spark",
    viewBox: "0 0 120 28",
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": label
  });
  const step = 120 / 59;
  const y = (v) => (27 - (26 * Math.min(v, most)) / (most || 1)).toFixed(1);
  const line = values.map((v, i) => `${(120 - (values.length - 1 - i) * step).toFixed(1)} ${y(v)}`)
                   .join(" L ");
  if (values.length > 1) root.append(svg("path", {class: "line", d: `M ${line}`}));
  return root;
}
