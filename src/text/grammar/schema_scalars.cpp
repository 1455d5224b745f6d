#include <cmath>
#include <limits>

#include "base/utf8.h"
#include "text/grammar/pattern.h"
#include "text/grammar/schema.h"

namespace millrace::grammar {

namespace {

using Json = SchemaCompiler::Json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Result<SchemaCompiler::Lengths> SchemaCompiler::lengths(const Json& schema, const char* min,
                                                        const char* max, const At& at) {
  Lengths out;
  const auto read = [&](const char* keyword, uint32_t& value) -> Status {
    const auto found = schema.find(keyword);
    if (found == schema.end()) return {};
    const double n = found->is_number() ? found->get<double>() : -1;
    if (!(n >= 0) || n != std::floor(n)) return wrong(at, keyword, "it is not a whole number");
    value = static_cast<uint32_t>(std::min(n, static_cast<double>(kNoLimit)));
    return {};
  };
  MILLRACE_TRY(read(min, out.min));
  MILLRACE_TRY(read(max, out.max));
  return out;
}

Result<int32_t> SchemaCompiler::string(const Json& schema, const At& at) {
  MILLRACE_ASSIGN(const Lengths n, lengths(schema, "minLength", "maxLength", at));
  const char* of_format = nullptr;
  if (schema.contains("format")) {
    if (!schema["format"].is_string()) return wrong(at, "format", "it is not a string");
    const auto format = schema["format"].get<std::string>();
    of_format = format_pattern(format);
    if (of_format == nullptr)
      MILLRACE_TRY(
          give_up(at, "format", fmt::format("\"{}\" is not supported", printable(format, 40))));
  }
  if (schema.contains("pattern")) {
    if (!schema["pattern"].is_string()) return wrong(at, "pattern", "it is not a string");
    if (of_format != nullptr) MILLRACE_TRY(give_up(at, "format", "not held beside a pattern"));
    return string_of_pattern(schema["pattern"].get<std::string>(), n, "pattern", at);
  }
  if (of_format != nullptr) return string_of_pattern(of_format, n, "format", at);
  return parts_.string(n.min, n.max);
}

Result<Pattern> SchemaCompiler::compiled(const std::string& pattern) {
  if (pattern_work_ > kMaxPatternWork)
    return error(Code::unsupported, "the schema's patterns are too large together");
  MILLRACE_ASSIGN(Pattern out, string_pattern(pattern, pattern_work_));
  if (out.lexeme && !parts_.has_room(*out.lexeme))
    return error(Code::unsupported, "the schema's patterns are too large together");
  return out;
}

Result<int32_t> SchemaCompiler::string_of_pattern(const std::string& pattern, Lengths n,
                                                  std::string_view keyword, const At& at) {
  const std::string key = fmt::format("{}:{}:{}", n.min, n.max, pattern);
  if (const auto known = parts_.by_pattern.find(key); known != parts_.by_pattern.end())
    return known->second;
  auto found = compiled(pattern);
  if (!found.ok()) {
    MILLRACE_TRY(give_up(at, keyword, found.status().message()));
    return parts_.string(n.min, n.max);
  }
  if (!found->relaxed.empty()) MILLRACE_TRY(give_up(at, keyword, found->relaxed));
  if (!found->lexeme) return parts_.never();
  if (n.min > 0 || n.max != kNoLimit) {
    auto limited = with_length(*found->lexeme, n.min, n.max);
    const bool large = !limited.ok() || (*limited && !parts_.has_room(**limited));
    pattern_work_ += large ? kMaxPatternWork / 4 : *limited ? (*limited)->n_states() * 64 : 0;
    if (large)
      MILLRACE_TRY(
          give_up(at, n.max != kNoLimit ? "maxLength" : "minLength", "too large beside a pattern"));
    else if (!*limited)
      return parts_.never();
    else
      found->lexeme = std::move(**limited);
  }
  const int32_t node = parts_.lexeme(std::move(*found->lexeme));
  parts_.by_pattern.emplace(key, node);
  return node;
}

namespace {

Result<NumberRange> range_of(const Json& schema) {
  NumberRange out{-kInfinity, kInfinity};
  for (const char* keyword : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
    const auto found = schema.find(keyword);
    if (found == schema.end()) continue;
    const bool lower = std::string_view(keyword).ends_with("inimum");
    const bool exclusive = keyword[0] == 'e';
    double& bound = lower ? out.min : out.max;
    bool& open = lower ? out.above : out.below;
    if (exclusive && found->is_boolean()) {  // draft 4: says it of minimum or maximum
      open = open || found->get<bool>();
      continue;
    }
    if (!found->is_number()) return error(Code::invalid_argument, "{}", keyword);
    const double value = found->get<double>();
    const bool tighter = lower ? value > bound : value < bound;
    if (!tighter && value != bound) continue;
    bound = value;
    open = tighter ? exclusive : open || exclusive;
  }
  return out;
}

}  // namespace

Result<int32_t> SchemaCompiler::integer(const Json& schema, const At& at) {
  const auto range = range_of(schema);
  if (!range.ok()) return wrong(at, range.status().message(), "it is not a number");
  auto [min, max, above, below] = range.value();
  if (min == -kInfinity && max == kInfinity) return parts_.lexeme(standard().integer);
  min = above && min == std::floor(min) ? min + 1 : std::ceil(min);
  max = below && max == std::floor(max) ? max - 1 : std::floor(max);
  const std::string pattern = integer_pattern(min, max);
  return pattern.empty() ? parts_.never() : parts_.pattern(pattern);
}

Result<int32_t> SchemaCompiler::number(const Json& schema, const At& at) {
  auto range = range_of(schema);
  if (!range.ok()) return wrong(at, range.status().message(), "it is not a number");
  if (range->min == -kInfinity && range->max == kInfinity) return parts_.lexeme(standard().number);
  const bool whole_min = range->min == std::floor(range->min);
  const bool whole_max = range->max == std::floor(range->max);
  if (!whole_min) {
    MILLRACE_TRY(give_up(at, "minimum", "only its whole part is held: its fraction is"));
    range->min = std::floor(range->min);
    range->above = false;
  }
  if (!whole_max) {
    MILLRACE_TRY(give_up(at, "maximum", "only its whole part is held: its fraction is"));
    range->max = std::ceil(range->max);
    range->below = false;
  }
  const std::string pattern = decimal_pattern(range.value());
  return pattern.empty() ? parts_.never() : parts_.pattern(pattern);
}

}  // namespace millrace::grammar
