// What goes on now: alerts, this machine, what is being measured, where the hypotheses stand.
import {exportedAt, get} from "./data.js";
import {el, formatCount, formatNumber} from "./dom.js";
import {badge, bytes, facts, plural, ref, section, trouble, value, when} from "./parts.js";
import {spark} from "./plots.js";

const kHistory = 60;
const past = {
  use: [],
  memory: [],
  gpus: new Map()
};

function remember(list, x) {
  list.push(x);
  if (list.length > kHistory) list.shift();
}

export function takeMachine(state) {
  remember(past.use, state.host.use * 100);
  remember(past.memory, state.host.memory_bytes - state.host.memory_available_bytes);
  for (const gpu of state.gpus) {
    if (!past.gpus.has(gpu.index)) past.gpus.set(gpu.index, []);
    remember(past.gpus.get(gpu.index), gpu.use_percent ?? 0);
  }
}

// A number, what it is of, and its last minute.
const gauge = (name, big, small, line) =>
    el("div", {class: "gauge"}, el("div", {class: "gauge-name"}, name),
       el("div", {class: "big"}, big), el("div", {class: "dim"}, small), line);

function cpuBars(cpus) {
  return el("ul", {class: "cpus", "aria-label": "CPUs"}, ...cpus.slice(0, 64).map((cpu) => {
    const meter = el("meter", {min: 0, max: 1, "aria-label": `CPU ${cpu.cpu}`});
    meter.value = cpu.use;
    return el(
        "li", {}, el("span", {class: "cpu"}, `cpu ${cpu.cpu}`), meter,
        el("span", {class: "dim"},
           `${Math.round(cpu.use * 100)} %${
               cpu.mhz > 0 ? ` · ${formatNumber(cpu.mhz / 1000)} GHz` : ""}`));
  }));
}

function hostCard(state, about) {
  const {host} = state;
  const used = host.memory_bytes - host.memory_available_bytes;
  return section(
      "This machine",
      el("p", {class: "dim"},
         about.machine ? `${about.machine.cpu_name}, ${plural(about.machine.n_cores, "core")}, ${
                             about.machine.isas.join(" ")}` :
                         ""),
      el("div", {class: "gauges"},
         gauge(
             "CPU", `${Math.round(host.use * 100)} %`,
             `load ${host.load.map(formatNumber).join(" · ")}`,
             spark(past.use, 100, "CPU use over the last minute")),
         gauge(
             "Memory", bytes(used), `of ${bytes(host.memory_bytes)}`,
             spark(past.memory, host.memory_bytes, "memory in use over the last minute")),
         ceilingGauge(about)),
      cpuBars(host.cpus), facts([
        [
          "Taken by the hypervisor",
          host.stolen > 0.001 ? `${formatNumber(host.stolen * 100)} %` : null
        ],
        ["CPU temperature", host.temperature_c ? `${formatNumber(host.temperature_c)} °C` : null],
        ["Swap in use", host.swap_used_bytes > 0 ? bytes(host.swap_used_bytes) : null],
      ]));
}

function ceilingGauge(about) {
  const measured = about.ceilings?.measured;
  if (!measured) return gauge("Read bandwidth", "–", "no run here measured it yet");
  const best = [...(measured.multiply_add ?? [])].sort((a, b) => b.gmac_per_s - a.gmac_per_s)[0];
  return gauge(
      "Read bandwidth", value(measured.read_gb_per_s, "GB/s"),
      el("span", {}, "measured by ", ref(`run:${about.ceilings.run}`)),
      best ? el("div", {class: "dim"},
                `${best.type} ${formatNumber(best.gmac_per_s)} GMAC/s (${best.isa})`) :
             null);
}

const ofMax = (now, max, unit) =>
    (now === null ? null : `${formatCount(now)}${max ? ` of ${formatCount(max)}` : ""} ${unit}`);

function gpuCard(gpu, driver) {
  if (gpu.problem)
    return section(`GPU ${gpu.index}: ${gpu.name}`, el("p", {class: "trouble"}, gpu.problem));
  const reasons = gpu.clock_reasons;
  return section(
      `GPU ${gpu.index}: ${gpu.name}`,
      el("div", {class: "gauges"},
         gauge(
             "Use", gpu.use_percent === null ? "–" : `${gpu.use_percent} %`,
             gpu.processes === null ?
                 "" :
                 plural(gpu.processes, "process").replace("processs", "processes"),
             spark(past.gpus.get(gpu.index) ?? [], 100, "GPU use over the last minute")),
         gauge(
             "Memory", gpu.memory_used_bytes === null ? "–" : bytes(gpu.memory_used_bytes),
             gpu.memory_bytes === null ? "" : `of ${bytes(gpu.memory_bytes)}`),
         gauge(
             "Power", value(gpu.power_w, "W"),
             gpu.power_limit_w === null ? "" : `limit ${formatNumber(gpu.power_limit_w)} W`),
         gauge(
             "Temperature", gpu.temperature_c === null ? "–" : `${gpu.temperature_c} °C`,
             [
               gpu.memory_temperature_c !== null ? `memory ${gpu.memory_temperature_c} °C` : "",
               gpu.slowdown_c !== null ? `slows at ${gpu.slowdown_c} °C` : ""
             ].filter(Boolean)
                 .join(" · "))),
      facts([
        ["SM clock", ofMax(gpu.sm_mhz, gpu.max_sm_mhz, "MHz")],
        ["Memory clock", ofMax(gpu.memory_mhz, gpu.max_memory_mhz, "MHz")],
        ["Clock reasons",
         reasons === null   ? null :
             reasons.length ? reasons.join(", ") :
                              "none"],
        [
          "ECC errors",
          gpu.ecc_corrected === null ? null :
                                       `${formatCount(gpu.ecc_corrected)} corrected, ${
                                           formatCount(gpu.ecc_uncorrected ?? 0)} not`
        ],
        [
          "Remapped rows",
          gpu.rows_corrected === null ?
              null :
              `${gpu.rows_corrected} after correctable, ${
                  gpu.rows_uncorrected} after uncorrectable errors${
                  gpu.remap_pending ? ", one waits" : ""}${gpu.remap_failed ? ", one failed" : ""}`
        ],
        [
          "PCIe",
          gpu.pcie_gen === null ?
              null :
              `generation ${gpu.pcie_gen} x${gpu.pcie_width} (can do ${gpu.max_pcie_gen} x${
                  gpu.max_pcie_width}), ${formatCount(gpu.pcie_replays ?? 0)} replays`
        ],
        ["Driver", driver],
      ]));
}

export function alertList(alerts) {
  if (alerts.length === 0) return null;
  return el(
      "ul", {class: "alerts", "aria-label": "Alerts"},
      ...alerts.map(
          (alert) => el(
              "li", {class: alert.level}, badge(alert.level),
              el("span", {},
                 el("strong", {}, `${alert.gpu === null ? "" : `GPU ${alert.gpu}: `}${alert.what}`),
                 " ", el("span", {class: "dim"}, alert.remedy)))));
}

function standing(overview) {
  const order = ["supported", "refuted", "contradicted", "undecided", "testing", "open"];
  return section(
      "Hypotheses",
      el("div", {class: "counts"},
         ...order.map(
             (status) =>
                 el("a", {href: `#/experiments/${status}`, class: "count"},
                    el("span", {class: "big"}, formatCount(overview.hypotheses[status])),
                    badge(status)))),
      facts([
        ["Runs", formatCount(overview.counts.runs)],
        ["Experiments", formatCount(overview.counts.experiments)],
        ["Verdicts", formatCount(overview.counts.verdicts)],
        ["Learnings", formatCount(overview.counts.learnings)],
        ["Posts", formatCount(overview.counts.posts)]
      ]));
}

function running(overview) {
  const items = overview.running.map(
      (run) =>
          el("li", {}, badge("running"), " ", ref(run.id), " ", el("code", {}, run.command), " ",
             el("span", {class: "dim"}, when(run.started))));
  return section(
      "Being measured",
      items.length ? el("ul", {class: "list"}, ...items) :
                     el("p", {class: "empty"}, "Nothing runs now."));
}

const newest = (events) => section(
    "Newest in the log", eventList(events), el("p", {}, el("a", {href: "#/log"}, "The whole log")));

export function eventList(events) {
  if (events.length === 0) return el("p", {class: "empty"}, "The log is empty.");
  return el(
      "ol", {class: "events"},
      ...events.map(
          (event) =>
              el("li", {}, el("span", {class: "dim"}, when(event.at)),
                 el("span", {class: "type"}, event.type), ref(event.ref),
                 el("span", {class: "text"}, event.text))));
}

const firstSteps = () => section(
    "An empty lab", el("p", {}, "Nothing was measured yet. From an empty lab to a verdict:"),
    el("pre", {}, [
      "millrace lab hypothesis 'AVX-512 norms a row faster' --op rmsnorm --compare avx2 avx512 --predict -10%",
      "millrace lab run hyp:1 -- bench rmsnorm --compare avx2 avx512", "millrace lab verdict hyp:1",
      "millrace lab learn hyp:1 'what it taught'"
    ].join("\n")));

export async function show(view) {
  const alerts = el("div", {}), machine = el("div", {class: "column"}),
        lab = el("div", {class: "column"}), news = el("div", {class: "column"});
  view.append(alerts, el("div", {class: "now"}, el("div", {class: "column"}, lab, machine), news));
  let about = {};
  const draw = (state) => {
    alerts.replaceChildren(...[alertList(state.alerts)].filter(Boolean));
    machine.replaceChildren(
        hostCard(state, about), ...state.gpus.map((gpu) => gpuCard(gpu, state.driver)),
        ...(state.gpus.length ?
                [] :
                [section("GPUs", el("p", {class: "empty"}, state.gpu_problem || "No GPU here."))]));
  };
  const drawLab = async () => {
    try {
      const [overview, log] = await Promise.all([get("overview"), get("events", {limit: 12})]);
      lab.replaceChildren(standing(overview));
      news.replaceChildren(running(overview), newest(log.items));
    } catch (error) {
      const isEmpty = /no runs are stored/.test(error.message);
      lab.replaceChildren(isEmpty ? firstSteps() : section("The lab's database", trouble(error)));
    }
  };
  if (exportedAt) {
    machine.append(section(
        "This machine",
        el("p", {class: "empty"},
           `This is a copy made at ${exportedAt}; 'millrace lab serve' shows the machine live.`)));
  } else {
    about = await get("machine");
    if (past.use.length === 0) takeMachine(about);
    draw(about);
  }
  await drawLab();
  return {machine: draw, log: drawLab};
}
