// Experiments and hypotheses: what was predicted, what came of it.
import {get} from "./data.js";
import {el, formatNumber} from "./dom.js";
import {badge, facts, field, pager, ref, section, select, table, value, when} from "./parts.js";

const kStatuses = [
  ["", "all"], ["open", "open"], ["testing", "testing"], ["supported", "supported"],
  ["refuted", "refuted"], ["undecided", "undecided"], ["contradicted", "contradicted"]
];

const prediction = (item) =>
    el("div", {}, el("div", {}, item.says), el("div", {class: "dim"}, item.of));

function hypothesisTable(items) {
  return table(
      [
        {
          head: "Hypothesis",
          cell: (h) => el("div", {}, ref(h.id), " ", el("span", {class: "text"}, h.text))
        },
        {head: "Prediction", cell: prediction},
        {head: "Status", cell: (h) => badge(h.status)},
        {head: "Runs", class: "number", cell: (h) => String(h.runs)},
        {
          head: "Written",
          cell: (h) =>
              el("span", {}, when(h.created), h.imported ? badge("imported", "plain") : null)
        },
      ],
      items, {caption: "Hypotheses", empty: "No hypothesis like that."});
}

function experimentTable(items) {
  return table(
      [
        {
          head: "Experiment",
          cell: (e) =>
              el("div", {}, ref(e.hypothesis), " ", el("span", {class: "text"}, e.text),
                 el("div", {class: "dim mono cut", title: e.command}, e.command))
        },
        {head: "Prediction", cell: prediction},
        {head: "Role", cell: (e) => e.role},
        {
          head: "Runs",
          cell: (e) =>
              el("span", {},
                 ...e.runs.flatMap(
                     (run) =>
                         [ref(`run:${run.run}`), " ",
                          run.state === "done" ? null : badge(run.state), " "]))
        },
        {
          head: "Outcome",
          cell: (e) =>
              (e.outcome ?
                   badge(e.outcome) :
                   el("span", {class: "dim"}, e.role === "baseline" ? "baseline" : "no verdict"))
        },
        {head: "Began", cell: (e) => when(e.created)},
      ],
      items, {
        caption: "Experiments",
        empty: "No experiment yet: 'millrace lab run HYP -- bench ...' makes one."
      });
}

export async function show(view, status = "") {
  const hypotheses = el("div", {});
  let list;
  const load = (wanted) => {
    list = pager("hypotheses", {status: wanted, limit: 25}, hypothesisTable);
    hypotheses.replaceChildren(list);
    return list.ready;
  };
  const chosen = kStatuses.some(([key]) => key === status) ? status : "";
  const experiments = pager("experiments", {limit: 25}, experimentTable);
  view.append(
      section(
          "Hypotheses",
          el("div", {class: "filters"},
             field(
                 "Status",
                 select(kStatuses, chosen, (key) => (location.hash = `#/experiments/${key}`)))),
          hypotheses),
      section("Experiments", experiments));
  await Promise.all([load(chosen), experiments.ready]);
  return {log: () => Promise.all([list.refresh(), experiments.refresh()])};
}

const change = (percent) => `${percent > 0 ? "+" : ""}${formatNumber(percent)} %`;
const isNumber = (x) => typeof x === "number";

const side = (name, x, unit) =>
    el("span", {}, el("span", {class: "dim"}, `${name ?? ""} `), value(x, unit));

function verdictCard(verdict) {
  const columns = [
    {
      head: "Case",
      cell: (r) => el("span", {}, [r.name, r.problem, r.mode].filter(Boolean).join(" · "))
    },
    {head: "A", class: "number", cell: (r) => side(r.a, r.value_a, r.unit)},
    {head: "B", class: "number", cell: (r) => side(r.b, r.value_b, r.unit)},
    {head: "Change", class: "number", cell: (r) => (isNumber(r.percent) ? change(r.percent) : "–")},
    {
      head: "95 %, all rows",
      class: "number",
      title: "interval of the change, 95 % for all rows together",
      cell: (r) =>
          (isNumber(r.percent_lo) && isNumber(r.percent_hi) ?
               `${change(r.percent_lo)} to ${change(r.percent_hi)}` :
               "–")
    },
    {head: "Outcome", cell: (r) => badge(r.outcome)},
  ];
  return el(
      "div", {class: "verdict"},
      el("p", {}, ref(verdict.id), " ", badge(verdict.outcome), " by ", ref(verdict.run),
         verdict.baseline_run ? el("span", {}, " against ", ref(verdict.baseline_run)) : null, " ",
         el("span", {class: "dim"}, when(verdict.created))),
      table(columns, verdict.rows, {caption: `Rows of ${verdict.id}`}));
}

export function learningCard(l) {
  return el(
      "li", {class: "learning"}, el("p", {}, ref(l.id), " ", el("span", {class: "text"}, l.text)),
      el("p", {class: "dim"},
         badge(l.strength.name, l.strength.name === "contradicted" ? "bad" : "plain"),
         ` ${l.scope}`,
         ` · ${l.strength.supporting_runs} runs support, ${l.strength.refuting_runs} refute`,
         l.strength.unfinished_runs ? `, ${l.strength.unfinished_runs} interrupted or failed` : "",
         l.evidence_imported ? " · measured elsewhere" : "", " · ", ref(l.hypothesis)),
      l.evidence_problem ? el("p", {class: "trouble"}, l.evidence_problem) : null,
      l.stale ? el("p", {class: "stale"}, badge("stale"), ` ${l.stale}`) : null);
}

export async function showOne(view, id) {
  const h = await get(`hypothesis/${id}`);
  const p = h.prediction;
  view.append(
      el("div", {class: "title"}, el("h2", {}, h.id), badge(h.status),
         el("span", {class: "dim"}, when(h.created)),
         h.imported ? badge("imported", "plain") : null),
      section(
          "Hypothesis", el("p", {class: "text large"}, h.text),
          h.rationale ? el("p", {class: "text dim"}, h.rationale) : null, facts([
            ["Prediction", p.says], ["Of", p.of],
            ["Baseline", p.baseline_run ? ref(p.baseline_run) : null],
            ["In the graph", el("a", {href: `#/graph/${h.id}`}, "what it hangs together with")]
          ])),
      section(
          "Verdicts",
          ...(h.verdicts.length ?
                  [...h.verdicts].reverse().map(verdictCard) :
                  [el("p", {class: "empty"}, `No verdict yet: millrace lab verdict ${h.id}`)])),
      section(
          "Experiments",
          table(
              [
                {
                  head: "Experiment",
                  cell: (e) =>
                      el("div", {}, ref(e.id), " ",
                         el("code", {class: "cut", title: e.command}, e.command))
                },
                {head: "Role", cell: (e) => e.role},
                {
                  head: "Runs",
                  cell: (e) =>
                      el("span", {},
                         ...e.runs.flatMap((run) => [ref(run.id), " ", badge(run.state), " "]))
                },
              ],
              h.experiments, {
                caption: "Experiments",
                empty: `No experiment yet: millrace lab run ${h.id} -- bench ...`
              })),
      section(
          "Learnings",
          h.learnings.length ? el("ul", {class: "list"}, ...h.learnings.map(learningCard)) :
                               el("p", {class: "empty"}, "Nothing was learned from it yet.")));
  return {};
}
