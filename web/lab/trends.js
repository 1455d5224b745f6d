// Plots over many runs: the roofline of an op's newest measurements, and the history of a subject.
import {get} from "./data.js";
import {el, formatNumber} from "./dom.js";
import {field, ref, section, select, table, value, when} from "./parts.js";
import {bandwidth, history, roofline} from "./plots.js";
import {roofPoints, roofsOf} from "./runs.js";

// The newest measurement of each subject.
function newest(rows) {
  const seen = new Set();
  return rows.filter(
      (row) =>
          !seen.has(`${row.subject} ${row.metric}`) && seen.add(`${row.subject} ${row.metric}`));
}

async function roofCard(name) {
  const {items} = await get("results", {name, metric: "time", limit: 400});
  const rows = newest(items).filter((row) => row.kernel);
  if (rows.length === 0)
    return section("Roofline", el("p", {class: "empty"}, "Only kernels have a roofline."));
  const run = await get(`run/${rows[0].run}`);
  return section(
      "Roofline",
      el("p", {class: "dim"}, "The newest measurement of every case, against the ceilings of ",
         ref(`run:${rows[0].run}`), "."),
      roofline(roofPoints(rows), roofsOf(run), `Roofline of ${name}`),
      bandwidth(roofPoints(rows), roofsOf(run), `Bandwidth of ${name}`));
}

async function historyCard(box, subject, metric) {
  const {items} = await get("results", {subject: subject.id, metric, limit: 300});
  const rows = [...items].reverse();
  const title =
      [subject.name, subject.problem, subject.variant, subject.mode].filter(Boolean).join(" · ");
  const points =
      rows.map((row) => ({
                 y: row.value,
                 lo: row.lo,
                 hi: row.hi,
                 short: row.started.slice(5, 10),
                 href: `#/run/${row.run}`,
                 title: `run:${row.run}, ${row.started.slice(0, 16).replace("T", " ")}: ${
                     formatNumber(row.value)} ${row.unit}`
               }));
  box.replaceChildren(
      history(points, rows[0]?.unit ?? "", `${metric} of ${title} over ${points.length} runs`),
      el("details", {}, el("summary", {}, "As a table"),
         table(
             [
               {head: "Run", cell: (r) => ref(`run:${r.run}`)},
               {head: "Started", cell: (r) => when(r.started)},
               {head: "Commit", cell: (r) => el("span", {class: "mono"}, r.commit.slice(0, 10))},
               {head: "Value", class: "number", cell: (r) => value(r.value, r.unit)}
             ],
             items, {caption: `History of ${title}`})));
}

const unique = (values) => [...new Set(values)].sort();

export async function show(view, wanted) {
  const {items: names} = await get("names");
  if (names.length === 0) {
    view.append(section("Plots", el("p", {class: "empty"}, "Nothing was measured yet.")));
    return {};
  }
  const name = names.some((item) => item.name === wanted) ? wanted : names[0].name;
  const {items: subjects} = await get("subjects", {name, limit: 1000});
  const plot = el("div", {}), controls = el("div", {class: "filters"});
  const chosen = {
    problem: subjects[0]?.problem,
    mode: subjects[0]?.mode,
    variant: subjects[0]?.variant,
    metric: subjects[0]?.metrics.split(",")[0]
  };
  const draw = async () => {
    const pick = (key, list) => (chosen[key] = list.includes(chosen[key]) ? chosen[key] : list[0]);
    const problems = unique(subjects.map((s) => s.problem));
    pick("problem", problems);
    const ofCase = subjects.filter((s) => s.problem === chosen.problem);
    const modes = unique(ofCase.map((s) => s.mode));
    pick("mode", modes);
    const variants = unique(ofCase.filter((s) => s.mode === chosen.mode).map((s) => s.variant));
    pick("variant", variants);
    const subject = ofCase.find((s) => s.mode === chosen.mode && s.variant === chosen.variant);
    const metrics = (subject?.metrics ?? "").split(",");
    pick("metric", metrics);
    const control = (label, key, list) => field(
        label,
        select(list.map((x) => [x, x || "–"]), chosen[key], (x) => ((chosen[key] = x), draw())));
    controls.replaceChildren(
        control("Case", "problem", problems), control("Mode", "mode", modes),
        control("Variant", "variant", variants), control("Metric", "metric", metrics));
    if (subject) await historyCard(plot, subject, chosen.metric);
  };
  view.append(
      el("div", {class: "filters"},
         field(
             "Name",
             select(
                 names.map((item) => [item.name, item.name]), name,
                 (x) => (location.hash = `#/plots/${encodeURIComponent(x)}`)))),
      section("History", controls, plot));
  await draw();
  view.append(await roofCard(name));
  return {};
}
