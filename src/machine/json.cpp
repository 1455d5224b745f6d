#include "machine/json.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr Isa kIsas[] = {Isa::generic,     Isa::avx2, Isa::avx512, Isa::avx512_vnni,
                         Isa::avx512_bf16, Isa::sm80, Isa::sm90};
constexpr MacType kMacTypes[] = {MacType::i8, MacType::f32, MacType::bf16};

// The enumerator that `name_of` spells like the member `key`.
template <class E, size_t n>
std::optional<E> enum_at(const Json& j, const char* key, const E (&all)[n]) {
  if (!j.contains(key) || !j[key].is_string()) return std::nullopt;
  for (E e : all)
    if (j[key] == name_of(e)) return e;
  return std::nullopt;
}

// A positive, finite number, or nothing.
std::optional<double> number_at(const Json& j, const char* key) {
  if (!j.contains(key) || !j[key].is_number()) return std::nullopt;
  const double value = j[key].get<double>();
  return value >= 0 ? std::optional(value) : std::nullopt;
}

std::string string_at(const Json& j, const char* key) {
  return j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : "";
}

Json json_of(const Gpu& gpu) {
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"sm", gpu.sm},
          {"n_sms", gpu.n_sms},
          {"memory_bytes", gpu.memory_bytes},
          {"l2_bytes", gpu.l2_bytes}};
}

Json json_of(const Rate& rate) {
  return {{"type", name_of(rate.type)},
          {"isa", name_of(rate.isa)},
          {"gmacs_one", rate.gmacs_one},
          {"gmacs_all", rate.gmacs_all}};
}

std::optional<Rate> parse_rate(const Json& j) {
  const auto type = enum_at(j, "type", kMacTypes);
  const auto isa = enum_at(j, "isa", kIsas);
  const auto one = number_at(j, "gmacs_one"), all = number_at(j, "gmacs_all");
  if (!type || !isa || !one || !all) return std::nullopt;
  return Rate{*type, *isa, *one, *all};
}

std::string text_of(const Json& j) {
  return json_text(j, 2);
}

}  // namespace

std::string to_json(const Machine& m) {
  Json isas = Json::array(), gpus = Json::array();
  for (Isa isa : m.isas) isas.push_back(name_of(isa));
  for (const Gpu& gpu : m.gpus) gpus.push_back(json_of(gpu));
  return text_of({{"fingerprint", fingerprint(m)},
                  {"cpu_name", m.cpu_name},
                  {"n_cpus", m.n_cpus},
                  {"n_cores", m.n_cores},
                  {"cpus", m.cpus},
                  {"cpu_quota", m.cpu_quota},
                  {"isas", isas},
                  {"has_amx", m.has_amx},
                  {"l1d_bytes", m.l1d_bytes},
                  {"l2_bytes", m.l2_bytes},
                  {"llc_bytes", m.llc_bytes},
                  {"n_numa_nodes", m.n_numa_nodes},
                  {"memory_bytes", m.memory_bytes},
                  {"memory_available_bytes", m.memory_available_bytes},
                  {"huge_pages", m.huge_pages},
                  {"gpus", gpus},
                  {"cuda_driver", m.cuda_driver},
                  {"gpu_problem", m.gpu_problem}});
}

std::string to_json(const Ceilings& c) {
  Json rates = Json::array();
  for (const Rate& rate : c.rates) rates.push_back(json_of(rate));
  return text_of({{"n_lanes", c.n_lanes},
                  {"read_gbps_one", c.read_gbps_one},
                  {"read_gbps_all", c.read_gbps_all},
                  {"read_loop", c.read_loop},
                  {"rates", rates},
                  {"barrier_ns", c.barrier_ns},
                  {"quiet", c.quiet},
                  {"noise", c.noise}});
}

Result<Ceilings> parse_ceilings(std::string_view text) {
  const Json j = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!j.is_object()) return error(Code::corrupt, "ceilings: not a JSON object");
  const auto lanes = number_at(j, "n_lanes"), barrier = number_at(j, "barrier_ns");
  const auto one = number_at(j, "read_gbps_one"), all = number_at(j, "read_gbps_all");
  if (!lanes || *lanes < 1 || *lanes > 65536 || !barrier || !one || !all)
    return error(Code::corrupt,
                 "ceilings: n_lanes, barrier_ns, read_gbps_one and read_gbps_all must be numbers");
  Ceilings c{.n_lanes = static_cast<int>(*lanes),
             .read_gbps_one = *one,
             .read_gbps_all = *all,
             .read_loop = string_at(j, "read_loop"),
             .rates = {},
             .barrier_ns = *barrier,
             .quiet = j.contains("quiet") && j["quiet"] == true,
             .noise = string_at(j, "noise")};
  if (!j.contains("rates") || !j["rates"].is_array())
    return error(Code::corrupt, "ceilings: rates must be an array");
  for (const Json& item : j["rates"]) {
    const auto rate = parse_rate(item);
    if (!rate) return error(Code::corrupt, "ceilings: not a rate: {}", text_of(item));
    c.rates.push_back(*rate);
  }
  return c;
}

}  // namespace millrace
