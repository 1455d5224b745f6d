// Ranges of numbers as patterns of their digits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "text/grammar/schema.h"

namespace millrace::grammar {

namespace {

// Whole parts have at most 18 digits.
constexpr int64_t kMost = 999'999'999'999'999'999;

std::string digits(size_t n) {
  return n == 0 ? "" : fmt::format("[0-9]{{{}}}", n);
}

// Texts of the same length as `bound`, from it on or up to it.
std::string from(std::string_view bound, bool up) {
  if (bound.empty()) return "";
  const char first = bound[0];
  const std::string same = first + from(bound.substr(1), up);
  if (up ? first == '9' : first == '0') return same;
  const std::string others = up ? fmt::format("[{}-9]", static_cast<char>(first + 1))
                                : fmt::format("[0-{}]", static_cast<char>(first - 1));
  return fmt::format("({}|{}{})", same, others, digits(bound.size() - 1));
}

// Of the same length.
std::string between(std::string_view lo, std::string_view hi) {
  if (lo.empty()) return "";
  if (lo[0] == hi[0]) return lo[0] + between(lo.substr(1), hi.substr(1));
  std::string out =
      fmt::format("({}{}|{}{}", lo[0], from(lo.substr(1), true), hi[0], from(hi.substr(1), false));
  if (hi[0] - lo[0] > 1)
    out += fmt::format("|[{}-{}]{}", static_cast<char>(lo[0] + 1), static_cast<char>(hi[0] - 1),
                       digits(lo.size() - 1));
  return out + ")";
}

// Whole numbers from lo to hi, neither below zero; empty: there are none.
std::string whole(int64_t lo, int64_t hi) {
  if (lo > hi) return "";
  std::string out;
  for (int64_t first = lo; first <= hi;) {
    const std::string text = fmt::format("{}", first);
    const int64_t last = std::min<int64_t>(hi, std::stoll(std::string(text.size(), '9')));
    out += fmt::format("{}{}", out.empty() ? "" : "|", between(text, fmt::format("{}", last)));
    first = last + 1;
  }
  return "(" + out + ")";
}

int64_t clamped(double value) {
  return static_cast<int64_t>(
      std::clamp(value, -static_cast<double>(kMost) - 1, static_cast<double>(kMost)));
}

std::string either(const std::vector<std::string>& all) {
  std::string out;
  for (const std::string& one : all)
    if (!one.empty()) out += (out.empty() ? "" : "|") + one;
  return out.empty() ? "" : "(" + out + ")";
}

// Sizes from lo to hi, neither below zero, with a fraction; `above`, `below`: without the bound.
std::string sizes(int64_t lo, int64_t hi, bool above, bool below) {
  if (lo > hi || (lo == hi && (above || below))) return "";
  std::vector<std::string> ways;
  // The bounds themselves, then what has the lower bound's whole part, then all between.
  if (!below) ways.push_back(fmt::format(R"({}(\.0{{1,16}})?)", hi));
  if (lo < hi && above) ways.push_back(fmt::format(R"({}\.0{{0,15}}[1-9][0-9]{{0,15}})", lo));
  if (const std::string inner = whole(above ? lo + 1 : lo, hi - 1); !inner.empty())
    ways.push_back(inner + R"((\.[0-9]{1,32})?)");
  return either(ways);
}

}  // namespace

std::string integer_pattern(double min, double max) {
  if (!(min <= max)) return "";
  const int64_t lo = std::max(clamped(min), -kMost), hi = std::min(clamped(max), kMost);
  const std::string negative = whole(std::max<int64_t>(1, -hi), -lo);
  return either({whole(std::max<int64_t>(0, lo), hi), negative.empty() ? "" : "-" + negative});
}

std::string decimal_pattern(const NumberRange& range) {
  if (!(range.min <= range.max)) return "";
  const int64_t lo = std::max(clamped(range.min), -kMost), hi = std::min(clamped(range.max), kMost);
  const bool open_lo = range.above && clamped(range.min) == lo;
  const bool open_hi = range.below && clamped(range.max) == hi;
  std::string positive, negative;
  if (hi >= 0) positive = lo >= 0 ? sizes(lo, hi, open_lo, open_hi) : sizes(0, hi, false, open_hi);
  if (lo < 0)
    negative =
        hi < 0 ? sizes(-hi, -lo, open_hi, open_lo) : sizes(0, -lo, hi == 0 && open_hi, open_lo);
  return either({positive, negative.empty() ? "" : "-" + negative});
}

}  // namespace millrace::grammar
