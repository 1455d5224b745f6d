#include "lab/notebook/conditions.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lab/build_info.h"

namespace millrace::lab {
namespace {

using nlohmann::json;

std::string text_at(const json& object, const std::string& name) {
  if (!object.is_object() || !object.contains(name)) return "";
  const json& found = object[name];
  if (found.is_string()) return found.get<std::string>();
  return found.is_number() ? found.dump() : "";
}

// The op whose folder counts; everything, for what runs many.
std::string source_of(const std::string& kind, const std::string& name) {
  if (kind == "op") return name;
  return kind == "chain" ? "matmul" : "";
}

void add(std::string& out, std::string_view what, const std::string& then, const std::string& now) {
  if (then == now) return;
  if (!out.empty()) out += "; ";
  if (then.empty())
    out += fmt::format("{} was not recorded", what);
  else if (what == "source")
    out += "the source changed";
  else
    out += fmt::format("{} was {}, is {}", what, then, now.empty() ? "none" : now);
}

}  // namespace

// From two JSON texts that may come from another machine.
Conditions conditions_of(const RunRecord& run, const std::string& kind, const std::string& name) {
  const json machine = json::parse(run.machine_json, nullptr, false);
  const json build = json::parse(run.build_json, nullptr, false);
  Conditions out{.hardware = run.head.machine,
                 .driver = "",
                 .toolkit = text_at(build, "compiler"),
                 .source = ""};
  if (run.head.device == "cuda") {
    out.driver = text_at(machine, "cuda_driver");
    if (const std::string nvcc = text_at(build, "cuda"); !nvcc.empty())
      out.toolkit += ", nvcc " + nvcc;
  }
  if (build.is_object() && build.contains("sources"))
    out.source = text_at(build["sources"], source_of(kind, name));
  return out;
}

Conditions conditions_now(const Machine& machine, const std::string& device,
                          const std::string& kind, const std::string& name) {
  const BuildInfo build = build_info();
  Conditions out{
      .hardware = fingerprint(machine), .driver = "", .toolkit = build.compiler, .source = ""};
  if (device == "cuda") {
    out.driver = std::to_string(machine.cuda_driver);
    if (!build.cuda.empty()) out.toolkit += ", nvcc " + build.cuda;
  }
  if (const auto found = build.sources.find(source_of(kind, name)); found != build.sources.end())
    out.source = found->second;
  return out;
}

std::string why_stale(const Conditions& then, const Conditions& now) {
  std::string out;
  add(out, "hardware", then.hardware, now.hardware);
  add(out, "driver", then.driver, now.driver);
  add(out, "toolkit", then.toolkit, now.toolkit);
  add(out, "source", then.source, now.source);
  return out;
}

}  // namespace millrace::lab
