#include "lab/notebook/records.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace millrace::lab {
namespace {

constexpr std::array<std::string_view, 7> kKinds = {"run",   "hyp",  "exp",  "verdict",
                                                    "learn", "post", "claim"};

std::optional<int64_t> number_of(std::string_view digits) {
  int64_t id = 0;
  const char* end = digits.data() + digits.size();
  const auto [read, failure] = std::from_chars(digits.data(), end, id);
  if (failure != std::errc() || read != end || id < 1) return std::nullopt;
  return id;
}

}  // namespace

std::string to_text(const NodeRef& ref) {
  return fmt::format("{}:{}", ref.kind, ref.id);
}

Result<NodeRef> parse_ref(std::string_view text) {
  const size_t colon = text.find(':');
  const auto kind = std::find(kKinds.begin(), kKinds.end(), text.substr(0, colon));
  const auto id = colon == text.npos ? std::nullopt : number_of(text.substr(colon + 1));
  if (kind == kKinds.end() || !id)
    return error(Code::invalid_argument,
                 "'{}' is not a record: give its kind and number, like run:12, hyp:3, exp:4, "
                 "verdict:2, learn:1, claim:5 or post:1",
                 printable(text, 100));
  return NodeRef{std::string(*kind), *id};
}

Result<int64_t> parse_ref(std::string_view text, std::string_view kind) {
  std::string_view digits = text;
  if (digits.size() > kind.size() && digits.starts_with(kind) && digits[kind.size()] == ':')
    digits.remove_prefix(kind.size() + 1);
  if (const auto id = number_of(digits)) return *id;
  return error(Code::invalid_argument, "'{}' is not one: give {}:ID, with an ID that {} lists",
               printable(text, 100), kind,
               kind == "hyp" ? "'millrace lab show hypotheses'" : "'millrace lab show runs'");
}

Status parse_effect(std::string_view text, Prediction& out) {
  if (text == "down" || text == "up" || text == "same") {
    out.direction = text;
    out.size = 0;
    return {};
  }
  const auto wrong = [&] {
    return error(
        Code::invalid_argument,
        "'{}' is not a prediction: give a change like -10% or +5% (at least that much), or "
        "down, up or same",
        printable(text, 100));
  };
  if (text.size() < 3 || (text[0] != '-' && text[0] != '+') || text.back() != '%') return wrong();
  double percent = 0;
  const char* end = text.data() + text.size() - 1;
  const auto [read, failure] = std::from_chars(text.data() + 1, end, percent);
  if (failure != std::errc() || read != end || !std::isfinite(percent) || percent <= 0 ||
      text[1] == '-')
    return wrong();
  if (percent > 1e6 || (text[0] == '-' && percent >= 100))
    return error(Code::invalid_argument, "nothing changes by {}", text);
  out.direction = text[0] == '-' ? "down" : "up";
  out.size = (text[0] == '-' ? -percent : percent) / 100;
  return {};
}

std::string effect_text(const Prediction& p) {
  if (p.direction == "same") return p.metric + " stays the same";
  const std::string verb = p.direction == "down" ? "falls" : "rises";
  if (p.size == 0) return fmt::format("{} {}", p.metric, verb);
  return fmt::format("{} {} by at least {:g} %", p.metric, verb, 100 * std::fabs(p.size));
}

std::string to_text(const Strength& s) {
  std::string out = fmt::format("{} ({} {} it, {} {}", s.name, s.n_supporting,
                                s.n_supporting == 1 ? "run supports" : "runs support", s.n_refuting,
                                s.n_refuting == 1 ? "refutes it" : "refute it");
  if (s.n_undecided > 0) out += fmt::format(", {} undecided", s.n_undecided);
  if (s.n_unfinished > 0) out += fmt::format(", {} interrupted or failed", s.n_unfinished);
  return out + ")";
}

std::string subject_text(const Prediction& p) {
  std::string out = p.name.empty() ? "everything measured" : p.name;
  if (!p.problem.empty()) out += ", case " + p.problem;
  if (!p.mode.empty()) out += ", " + p.mode;
  if (p.compares_variants())
    out += fmt::format(": {} against {}", p.variant_b, p.variant_a);
  else if (p.baseline_run)
    out += fmt::format(": against run:{}", *p.baseline_run);
  else
    out += ": against a baseline run";
  return out;
}

}  // namespace millrace::lab
