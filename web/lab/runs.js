// Measurements over all runs with a pinned baseline, and one run in full.
import {get} from "./data.js";
import {el, formatCount, formatNumber} from "./dom.js";
import {badge, facts, failed, field, input, pager, percent, ref, section, select, table, value, when} from "./parts.js";
import {bandwidth, bars, roofline, strips} from "./plots.js";

const kPinItem = "millrace.lab.pin";
const kStripRows = 24;

// The baseline stays pinned while one walks about; it is this browser's alone.
let pin = null;
try {
  pin = Number(sessionStorage.getItem(kPinItem)) || null;
} catch {
  // Storage is blocked: it lasts until the page is closed.
}
export const pinned = () => pin;
function setPin(run) {
  pin = run;
  try {
    run ? sessionStorage.setItem(kPinItem, run) : sessionStorage.removeItem(kPinItem);
  } catch {
    // As above.
  }
}

// What the pinned run measured, by subject and metric.
async function baseline() {
  if (!pin) return null;
  try {
    const run = await get(`run/${pin}`);
    return new Map(run.results.map((row) => [`${row.subject} ${row.metric}`, row.value]));
  } catch {
    setPin(null);
    return null;
  }
}

function ratioCell(row, base) {
  const of = base?.get(`${row.subject} ${row.metric}`);
  if (of === undefined || of === 0) return el("span", {class: "dim"}, "–");
  return ratio(row.value / of, row.better);
}

function ratio(x, better) {
  const isSame = Math.abs(x - 1) < 0.005;
  const isBetter = better === "higher" ? x > 1 : x < 1;
  return el("span", {class: isSame ? "dim" : isBetter ? "better" : "worse"}, `${x.toFixed(3)}×`);
}

const interval = (row) =>
    (row.lo === null || row.hi === null ?
         "" :
         `95 %: ${formatNumber(row.lo)} to ${formatNumber(row.hi)} ${row.unit}`);

const valueCell = (row) => el("span", {title: interval(row)}, value(row.value, row.unit));
const floorCell = (row) =>
    (row.kernel ? el("span", {
      title: `floor ${formatNumber(row.kernel.floor_us)} us, bound by ${
          row.kernel.bound || "nothing measured"}`
    },
                     row.kernel.floor_us > 0 ? percent(row.kernel.floor_percent) : "–") :
                  "–");
const rateCell = (row, key) => (row.kernel?.[key] > 0 ? formatNumber(row.kernel[key]) : "–");

// base: of the pinned run, or undefined for no such column.
function resultColumns(base, withRun) {
  return [
    withRun ? {
      head: "Run",
      cell: (r) =>
          el("span", {class: "nowrap"}, ref(`run:${r.run}`),
             r.imported ? badge("imported", "plain") : null)
    } :
              null,
    {head: "Name", cell: (r) => r.name},
    {head: "Case", cell: (r) => el("span", {class: "mono"}, r.problem)},
    {head: "Variant", cell: (r) => r.variant},
    {
      head: "Mode",
      cell: (r) => el("span", {class: "nowrap"}, `${r.mode} · ${r.lanes}`),
      title: "mode and threads"
    },
    {head: "Metric", cell: (r) => r.metric},
    {
      head: "Value",
      class: "number",
      cell: valueCell,
      title: "median; hold the pointer over it for its interval"
    },
    base === undefined ? null : {
      head: pin ? `÷ run:${pin}` : "÷ baseline",
      class: "number",
      cell: (r) => ratioCell(r, base),
      title: "value over the pinned run's value of the same subject"
    },
    {head: "GB/s", class: "number", cell: (r) => rateCell(r, "gbps")},
    {head: "GFLOP/s", class: "number", cell: (r) => rateCell(r, "gflops")},
    {head: "% of floor", class: "number", cell: floorCell},
    withRun ? {head: "Started", cell: (r) => when(r.started)} : null,
  ].filter(Boolean);
}

function runColumns(repin) {
  return [
    {
      head: "Run",
      cell: (r) => el(
          "span", {class: "nowrap"}, ref(r.id), " ", r.imported ? badge("imported", "plain") : null)
    },
    {head: "State", cell: (r) => badge(r.state)},
    {head: "Command", cell: (r) => el("code", {class: "cut", title: r.command}, r.command)},
    {head: "Kind", cell: (r) => r.kind},
    {head: "Device", cell: (r) => r.device},
    {head: "Rows", class: "number", cell: (r) => formatCount(r.rows)},
    {
      head: "Commit",
      cell: (r) => el("span", {class: "mono", title: r.commit}, r.commit.slice(0, 10))
    },
    {head: "Started", cell: (r) => when(r.started)},
    {head: "Baseline", cell: (r) => pinButton(r.run, repin)},
  ];
}

function pinButton(run, repin) {
  const isPin = pin === run;
  return el(
      "button", {
        type: "button",
        class: "small",
        "aria-pressed": String(isPin),
        onclick: () => (setPin(isPin ? null : run), repin())
      },
      isPin ? "Unpin" : "Pin");
}

export async function show(view, ...words) {
  const filters = {name: words[0] ?? "", problem: "", variant: "", mode: "", metric: ""};
  const names = await get("names");
  const results = el("div", {}), runs = el("div", {}), pinNote = el("p", {class: "dim"});
  let lists = [];
  const load = async () => {
    const base = await baseline();
    pinNote.replaceChildren(
        ...(pin ? ["Baseline: ", ref(`run:${pin}`), " ", pinButton(pin, load)] :
                  ["Pin a run below to compare everything with it."]));
    const table_of = (items) => table(resultColumns(base, true), items, {
      caption: "Measurements",
      empty: "No measurement like that.",
      rowClass: (r) => (r.run === pin ? "pinned" : "")
    });
    lists = [
      pager("results", {...filters, limit: 50}, table_of),
      pager("runs", {name: filters.name, limit: 25}, (items) => table(runColumns(load), items, {
                                                       caption: "Runs",
                                                       empty: "No run like that.",
                                                       rowClass: (r) =>
                                                           (r.run === pin ? "pinned" : "")
                                                     }))
    ];
    results.replaceChildren(lists[0]);
    runs.replaceChildren(lists[1]);
    await Promise.all(lists.map((list) => list.ready));
  };
  const set = (key) => (text) => {
    filters[key] = text;
    load().catch(failed(results));
  };
  const options = [
    ["", "all"],
    ...names.items.map((item) => [item.name, `${item.name} (${formatCount(item.runs)})`])
  ];
  view.append(
      section(
          "Measurements",
          el("div", {class: "filters"}, field("Name", select(options, filters.name, set("name"))),
             field("Case", input("", "1x*", set("problem"))),
             field("Variant", input("", "avx*", set("variant"))),
             field("Mode", input("", "cold", set("mode"))),
             field("Metric", input("", "time", set("metric")))),
          pinNote, results),
      section("Runs", runs));
  await load();
  return {log: () => Promise.all(lists.map((list) => list.refresh()))};
}

function roofsOf(run) {
  const best = {read_gbps: 0, rates: new Map()};
  for (const {measured} of run.ceilings) {
    if (!measured) continue;
    best.read_gbps = Math.max(best.read_gbps, measured.read_gb_per_s ?? 0);
    for (const rate of measured.multiply_add ?? [])
      if ((best.rates.get(rate.type)?.gmacs ?? 0) < rate.gmac_per_s)
        best.rates.set(rate.type, {name: `${rate.type} ${rate.isa}`, gmacs: rate.gmac_per_s});
  }
  return {read_gbps: best.read_gbps, rates: [...best.rates.values()]};
}

const rowName = (row) => [row.problem, row.variant, row.mode].filter(Boolean).join(" · ");

export const roofPoints = (rows) => rows.filter((row) => row.kernel && row.metric === "time")
                                        .map((row) => ({
                                               bytes: row.kernel.bytes,
                                               macs: row.kernel.macs,
                                               us: row.value,
                                               group: row.variant,
                                               title: `${row.name} ${rowName(row)}`,
                                               short: rowName(row),
                                               href: `#/run/${row.run}`
                                             }));
export {roofsOf};

function samplesCard(run, samples) {
  const rows = new Map(run.results.map((row) => [row.id, row]));
  const found = samples.items.filter((item) => rows.has(item.id))
                    .map((item) => ({...item, row: rows.get(item.id)}));
  const units = [...new Set(found.map((item) => item.row.unit))];
  const box = el("div", {});
  const names = [...new Set(found.map((item) => `${item.row.name} ${item.row.problem}`))];
  const draw = (name) => {
    const shown = found.filter((item) => `${item.row.name} ${item.row.problem}` === name)
                      .slice(0, kStripRows);
    box.replaceChildren(...units.map((unit) => {
      const of = shown.filter((item) => item.row.unit === unit);
      if (of.length === 0) return "";
      return strips(
          of.map((item) => ({
                   name: [item.row.variant, item.row.mode].filter(Boolean).join(" · "),
                   samples: item.samples,
                   twin: item.twin,
                   mid: item.row.value
                 })),
          unit,
          `Samples of ${name} in ${unit}: ${
              of.map((item) => `${item.row.variant} median ${formatNumber(item.row.value)}`)
                  .join(", ")}`);
    }));
  };
  if (found.length === 0)
    return section("Samples", el("p", {class: "empty"}, "This run has no samples."));
  draw(names[0]);
  return section(
      "Samples",
      el("div", {class: "filters"},
         field("Case", select(names.map((name) => [name, name]), names[0], draw))),
      box,
      el("p", {class: "dim"},
         "Every dot is a sample, the line is the median. Grey dots are the twin, the same variant measured again: how far the two lie apart is noise."));
}

// A step's time by op, where the run has it: one measurement "op_time" per op, its case the step.
function traceCards(run) {
  const rows = run.results.filter((row) => row.metric === "op_time");
  return [...new Set(rows.map((row) => row.problem))].map((step) => {
    const ops = rows.filter((row) => row.problem === step).sort((a, b) => b.value - a.value);
    const parts = ops.map((row) => ({name: row.variant, value: row.value}));
    return section(`A step by op: ${step}`, bars(parts, ops[0].unit, `Time of each op in ${step}`));
  });
}

export async function showOne(view, id) {
  const [run, samples] =
      await Promise.all([get(`run/${id}`), get(`samples/${id}`).catch(() => ({items: []}))]);
  const results = el("div", {});
  const variants = [...new Set(run.results.map((row) => row.variant))];
  let against = "";
  const draw = async () => {
    const base = await baseline();
    const columns = resultColumns(pin ? base : undefined, false);
    if (against)
      columns.splice(6, 0, {
        head: `÷ ${against}`,
        class: "number",
        title: "value over that variant's value of the same case and mode",
        cell: (row) => {
          const of = run.results.find(
              (other) => other.variant === against && other.problem === row.problem &&
                  other.name === row.name && other.mode === row.mode &&
                  other.metric === row.metric);
          return of && of.value ? ratio(row.value / of.value, row.better) : "–";
        }
      });
    results.replaceChildren(table(
        columns, run.results,
        {caption: "Measurements of this run", empty: "It has no measurement."}));
  };
  const title =
      el("div", {class: "title"}, el("h2", {}, run.id), badge(run.state),
         run.imported ? badge("imported", "plain") : null, el("span", {class: "space"}));
  const pins = el("span", {});
  const repin = () => (pins.replaceChildren(pinButton(run.run, repin)), draw());
  title.append(pins);
  const build = run.build ?? {};
  view.append(
      title, ...(run.problem ? [el("p", {class: "trouble"}, run.problem)] : []),
      section("Run", el("p", {}, el("code", {}, run.command)), facts([
                ["Started", when(run.started)], ["Ended", run.ended ? when(run.ended) : null],
                ["Device", run.device], ["Machine", run.machine],
                ["Commit", el("span", {class: "mono"}, run.commit)], ["Compiler", build.compiler],
                [
                  "Experiment on",
                  run.hypothesis ? el("span", {}, ref(run.hypothesis), ` as ${run.role}`) : null
                ],
                [
                  "Digest",
                  run.digest ? el("span", {class: "mono", title: run.digest},
                                  `${run.digest.slice(0, 16)}…`) :
                               "none: the run has not ended"
                ],
                ["Origin", run.origin || null]
              ])),
      section(
          "Measurements",
          el("div", {class: "filters"},
             field(
                 "Compare with variant",
                 select(
                     [["", "none"], ...variants.map((v) => [v, v])], "",
                     (v) => ((against = v), draw())))),
          results),
      ...traceCards(run), samplesCard(run, samples),
      section(
          "Roofline", roofline(roofPoints(run.results), roofsOf(run), `Roofline of ${run.id}`),
          bandwidth(roofPoints(run.results), roofsOf(run), `Bandwidth of ${run.id}`),
          table(
              [
                {head: "Ceilings", cell: (c) => c.when}, {head: "At", cell: (c) => when(c.at)}, {
                  head: "Read",
                  class: "number",
                  cell: (c) => value(c.measured?.read_gb_per_s, "GB/s")
                },
                {
                  head: "Best rates",
                  cell:
                      (c) => (c.measured?.multiply_add ?? [])
                                 .map(
                                     (rate) =>
                                         `${rate.type} ${rate.isa} ${
                                             formatNumber(rate.gmac_per_s)}`)
                                 .join(", ") +
                      " GMAC/s"
                }
              ],
              run.ceilings, {caption: "Ceilings", empty: "No ceilings were measured with it."})));
  await repin();
  return {};
}
