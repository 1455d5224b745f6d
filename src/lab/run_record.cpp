#include "lab/run_record.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "hub/digest.h"
#include "lab/json_fields.h"

namespace millrace::lab {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kInf = std::numeric_limits<double>::infinity();

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

// What schema 2 did not know is left out where it is empty: digests of runs made then stay valid.
Json json_of(const KernelFacts& k) {
  Json out = {{"key", k.key},
              {"numerics", k.numerics},
              {"layout", k.layout},
              {"isa", k.isa},
              {"bytes", k.bytes},
              {"macs", k.macs},
              {"gbps", k.gbps},
              {"gflops", k.gflops},
              {"floor_us", k.floor_us},
              {"floor_percent", k.floor_percent},
              {"isa_percent", k.isa_percent},
              {"bound", k.bound},
              {"ring_entries", k.ring_entries},
              {"ring_bytes", k.ring_bytes},
              {"verified_whole", k.verified_whole},
              {"verified_sampled", k.verified_sampled}};
  if (k.verified_rows != 0) out["verified_rows"] = k.verified_rows;
  if (!k.witness.empty()) out["witness"] = k.witness;
  return out;
}

Json json_of(const Metric& m) {
  Json out = {{"kind", m.subject.kind},
              {"name", m.subject.name},
              {"problem", m.subject.problem},
              {"variant", m.subject.variant},
              {"mode", m.subject.mode},
              {"n_lanes", m.subject.n_lanes},
              {"metric", m.name},
              {"unit", m.unit},
              {"better", m.better},
              {"value", m.value.mid},
              {"lo", finite_or_null(m.value.lo)},
              {"hi", finite_or_null(m.value.hi)},
              {"noise", finite_or_null(m.noise)},
              {"samples", m.samples},
              {"twin", m.twin}};
  if (m.kernel) out["kernel"] = json_of(*m.kernel);
  return out;
}

Result<KernelFacts> parse_facts(const Json& json) {
  JsonFields in(json);
  KernelFacts out{.key = in.text("key"),
                  .numerics = in.text("numerics"),
                  .layout = in.text("layout"),
                  .isa = in.text("isa"),
                  .bytes = in.real("bytes"),
                  .macs = in.real("macs"),
                  .gbps = in.real("gbps"),
                  .gflops = in.real("gflops"),
                  .floor_us = in.real("floor_us"),
                  .floor_percent = in.real("floor_percent"),
                  .isa_percent = in.real("isa_percent"),
                  .bound = in.text("bound"),
                  .ring_entries = in.integer("ring_entries"),
                  .ring_bytes = in.real("ring_bytes"),
                  .verified_whole = in.integer("verified_whole"),
                  .verified_sampled = in.integer("verified_sampled")};
  if (in.has("verified_rows")) out.verified_rows = in.integer("verified_rows");
  if (in.has("witness")) out.witness = in.text("witness");
  MILLRACE_TRY(in.status());
  return out;
}

Result<Metric> parse_metric(const Json& json) {
  JsonFields in(json);
  Metric out;
  const int64_t n_lanes = in.integer("n_lanes");
  if (n_lanes < 0 || n_lanes > 1 << 20) in.fail("n_lanes", "a number of threads");
  out.subject = {in.text("kind"),    in.text("name"), in.text("problem"),
                 in.text("variant"), in.text("mode"), static_cast<int>(n_lanes)};
  out.name = in.text("metric");
  out.unit = in.text("unit");
  out.better = in.text("better");
  if (out.better != "lower" && out.better != "higher") in.fail("better", "lower or higher");
  out.value = {in.real_or("lo", -kInf), in.real("value"), in.real_or("hi", kInf)};
  out.noise = in.real_or("noise", kInf);
  out.samples = in.reals("samples");
  out.twin = in.reals("twin");
  MILLRACE_TRY(in.status());
  if (in.has("kernel")) {
    MILLRACE_ASSIGN(out.kernel, parse_facts(json["kernel"]));
  }
  return out;
}

}  // namespace

Json document_of(const RunRecord& record) {
  const RunSummary& head = record.head;
  Json ceilings = Json::array(), metrics = Json::array();
  for (const StoredCeilings& c : record.ceilings)
    ceilings.push_back({{"at", c.at}, {"when", c.when}, {"json", c.json}});
  for (const Metric& m : record.metrics) metrics.push_back(json_of(m));
  return {{"type", "run"},
          {"uid", head.uid},
          {"kind", head.kind},
          {"started", head.started},
          {"ended", head.ended},
          {"state", head.state},
          {"device", head.device},
          {"machine", head.machine},
          {"machine_json", record.machine_json},
          {"commit", head.commit},
          {"build_json", record.build_json},
          {"command", head.command},
          {"ceilings", ceilings},
          {"metrics", metrics}};
}

std::string digest_of(const RunRecord& record) {
  return sha256_of(json_text(document_of(record)));
}

Result<RunRecord> parse_run_record(const Json& document) {
  JsonFields in(document);
  RunRecord out;
  out.head.uid = in.text("uid");
  out.head.kind = in.text("kind");
  out.head.started = in.text("started");
  out.head.ended = in.text("ended");
  out.head.state = in.text("state");
  out.head.device = in.text("device");
  out.head.machine = in.text("machine");
  out.machine_json = in.text("machine_json");
  out.head.commit = in.text("commit");
  out.build_json = in.text("build_json");
  out.head.command = in.text("command");
  for (const Json& item : in.array("ceilings")) {
    JsonFields c(item);
    out.ceilings.push_back({c.text("at"), c.text("when"), c.text("json")});
    MILLRACE_TRY(c.status());
  }
  for (const Json& item : in.array("metrics")) {
    MILLRACE_ASSIGN(Metric metric, parse_metric(item));
    out.metrics.push_back(std::move(metric));
  }
  out.head.digest = in.has("digest") ? in.text("digest") : "";
  MILLRACE_TRY(in.status());
  return out;
}

}  // namespace millrace::lab
