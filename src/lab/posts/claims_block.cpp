#include "lab/posts/claims_block.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/utf8.h"
#include "lab/posts/text.h"

namespace millrace::lab {
namespace {

using Kind = ClaimLine::Kind;
constexpr size_t kMostLines = 1000;

struct Pair {
  Kind kind;
  std::string_view word, sign;
};
constexpr std::array kPairs = {
    Pair{Kind::ratio, "ratio", "/"}, Pair{Kind::change, "change", "->"},
    Pair{Kind::rise, "rise", "->"},  Pair{Kind::drop, "drop", "->"},
    Pair{Kind::sum, "sum", "+"},     Pair{Kind::difference, "difference", "-"},
    Pair{Kind::share, "share", "/"},
};

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 40 && !is_digit(text[0]) &&
         std::all_of(text.begin(), text.end(), is_word);
}

bool is_hex(std::string_view text) {
  return text.size() >= 16 && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::vector<std::string> split(std::string_view text, std::string_view by) {
  std::vector<std::string> out;
  for (;;) {
    const size_t end = text.find(by);
    out.emplace_back(trimmed(text.substr(0, end)));
    if (end == text.npos) return out;
    text.remove_prefix(end + by.size());
  }
}

// "a of b | c": what stands before " of ", and the rest.
bool cut_at_of(std::string_view text, std::string_view& before, std::string_view& after) {
  const size_t at = text.find(" of ");
  if (at == text.npos) return false;
  before = trimmed(text.substr(0, at));
  after = trimmed(text.substr(at + 4));
  return true;
}

class Parser {
 public:
  Result<ClaimsBlock> all(std::string_view text, int line) {
    for (const std::string_view raw : split_lines(text)) {
      const std::string_view content = trimmed(raw);
      if (!content.empty())
        if (const Status status = take(content); !status.ok())
          return error(Code::corrupt, "line {}: {}: '{}'", line, status.message(),
                       printable(content, 120));
      ++line;
      if (names_.size() > kMostLines)
        return error(Code::corrupt, "more than {} lines of claims", kMostLines);
    }
    return std::move(out_);
  }

 private:
  Status take(std::string_view text) {
    const size_t equals = text.find('=');
    if (equals == text.npos) return error(Code::corrupt, "a claim is 'NAME = ...'");
    std::string_view left = trimmed(text.substr(0, equals));
    const std::string_view right = trimmed(text.substr(equals + 1));
    std::string_view kind = "claim";
    for (const std::string_view word : {"run", "plot"})
      if (left.starts_with(word) && left.size() > word.size() && left[word.size()] == ' ') {
        kind = word;
        left = trimmed(left.substr(word.size()));
      }
    if (!is_name(left))
      return error(Code::corrupt, "a name is a letter, then letters, digits and '_'");
    if (!names_.insert(std::string(left)).second)
      return error(Code::corrupt, "the name {} is used twice", left);
    const std::string name(left);
    if (kind == "run") return take_run(name, right);
    return kind == "plot" ? take_plot(name, right) : take_claim(name, right);
  }

  Status take_run(const std::string& name, std::string_view text) {
    const auto words = split(text, " ");
    if (words.size() != 3 || words[1] != "sha256" || !is_hex(words[0]) || !is_hex(words[2]))
      return error(Code::corrupt, "a run is 'run NAME = UID sha256 DIGEST'");
    out_.runs.push_back({name, words[0], words[2]});
    return {};
  }

  bool has_run(const std::string& name) const {
    return std::any_of(out_.runs.begin(), out_.runs.end(),
                       [&](const RunLine& run) { return run.name == name; });
  }

  Result<MetricPattern> pattern(std::vector<std::string> parts) {
    MetricPattern out;
    if (!has_run(parts[0]))
      return error(Code::corrupt, "no run is called {} above", printable(parts[0], 60));
    parts.resize(6, "*");
    out.run = parts[0];
    std::array to = {&out.metric, &out.name, &out.problem, &out.variant, &out.mode};
    for (size_t i = 0; i < to.size(); ++i) *to[i] = parts[i + 1];
    return out;
  }

  // "time of RUN | op | case | variant | mode | 2 lanes | best", the last two as needed.
  Status take_metric(ClaimLine& claim, std::string_view metric, std::string_view rest) {
    auto parts = split(rest, "|");
    constexpr std::array kStatistics = {"median", "low", "high", "best"};
    if (std::find(kStatistics.begin(), kStatistics.end(), parts.back()) != kStatistics.end()) {
      claim.statistic = parts.back();
      parts.pop_back();
    }
    int n_lanes = 0;
    if (parts.back().ends_with(" lanes")) {
      const std::string& text = parts.back();
      if (std::from_chars(text.data(), text.data() + text.size(), n_lanes).ec != std::errc())
        return error(Code::corrupt, "lanes are '| 2 lanes'");
      parts.pop_back();
    }
    if (parts.size() < 2 || parts.size() > 5)
      return error(Code::corrupt,
                   "a measurement is 'METRIC of RUN | NAME | CASE | VARIANT | MODE'");
    parts.insert(parts.begin() + 1, std::string(metric));
    MILLRACE_ASSIGN(claim.pattern, pattern(std::move(parts)));
    claim.pattern.n_lanes = n_lanes;
    return {};
  }

  Status take_claim(const std::string& name, std::string_view text) {
    ClaimLine claim{.name = name};
    std::string_view before, after;
    if (cut_at_of(text, before, after)) {
      if (!is_name(before)) return error(Code::corrupt, "no measurement has such a name");
      if (after.find('|') != after.npos) {
        MILLRACE_TRY(take_metric(claim, before, after));
      } else {
        claim.kind = Kind::fact;
        claim.fact = before;
        claim.of = {std::string(after)};
      }
    } else {
      MILLRACE_TRY(take_arithmetic(claim, text));
    }
    const bool is_prediction = claim.kind == Kind::fact && claim.fact == "prediction";
    for (const std::string& other : claim.of)
      if (is_prediction ? !has_run(other) : out_.find(other) == nullptr)
        return error(Code::corrupt, "no claim is called {} above", printable(other, 60));
    out_.claims.push_back(std::move(claim));
    return {};
  }

  static Status take_arithmetic(ClaimLine& claim, std::string_view text) {
    constexpr std::string_view kAcross = "| across ops";
    claim.across = text.ends_with(kAcross);
    if (claim.across) text = trimmed(text.substr(0, text.size() - kAcross.size()));
    for (const Pair& pair : kPairs) {
      if (!text.starts_with(pair.word) || text.size() <= pair.word.size() ||
          text[pair.word.size()] != ' ')
        continue;
      claim.kind = pair.kind;
      claim.of = split(text.substr(pair.word.size()), pair.sign);
      if (claim.of.size() < 2 || (claim.of.size() > 2 && pair.kind != Kind::sum)) break;
      return {};
    }
    return error(Code::corrupt,
                 "a claim is 'METRIC of RUN | ...', 'FACT of CLAIM', 'ratio A / B', 'change A -> "
                 "B', 'rise A -> B', 'drop A -> B', 'sum A + B', 'difference A - B' or 'share A / "
                 "B'");
  }

  Status take_plot(const std::string& name, std::string_view text) {
    PlotLine plot{.name = name};
    std::string_view before, after;
    if (text.starts_with("bars ")) {
      for (std::string& word : split(text.substr(5), " "))
        if (!word.empty()) plot.bars.push_back(std::move(word));
      for (const std::string& bar : plot.bars) {
        const ClaimLine* claim = out_.find(bar);
        if (claim == nullptr || claim->kind != Kind::metric)
          return error(Code::corrupt, "{} is no measurement above", printable(bar, 60));
      }
      if (plot.bars.empty() || plot.bars.size() > 40)
        return error(Code::corrupt, "bars are 1 to 40 claims");
    } else if (cut_at_of(text, before, after) && before == "curve") {
      auto parts = split(after, "|");
      if (parts.size() < 3 || parts.size() > 6)
        return error(Code::corrupt,
                     "a curve is 'curve of RUN | METRIC | NAME | CASE | VARIANT | "
                     "MODE'");
      plot.is_curve = true;
      MILLRACE_ASSIGN(plot.curve, pattern(std::move(parts)));
    } else {
      return error(Code::corrupt, "a plot is 'bars CLAIM CLAIM' or 'curve of RUN | ...'");
    }
    out_.plots.push_back(std::move(plot));
    return {};
  }

  ClaimsBlock out_;
  std::set<std::string> names_;
};

std::string pattern_text(const MetricPattern& p) {
  return fmt::format("{} | {} | {} | {}", p.name, p.problem, p.variant, p.mode);
}

std::string text_of(const ClaimLine& claim) {
  if (claim.kind == Kind::fact) return fmt::format("{} of {}", claim.fact, claim.of[0]);
  for (const Pair& pair : kPairs)
    if (pair.kind == claim.kind)
      return fmt::format("{} {}{}", pair.word, fmt::join(claim.of, fmt::format(" {} ", pair.sign)),
                         claim.across ? " | across ops" : "");
  std::string out = fmt::format("{} of {} | {}", claim.pattern.metric, claim.pattern.run,
                                pattern_text(claim.pattern));
  if (claim.pattern.n_lanes > 0) out += fmt::format(" | {} lanes", claim.pattern.n_lanes);
  return claim.statistic == "median" ? out : out + " | " + claim.statistic;
}

}  // namespace

const ClaimLine* ClaimsBlock::find(std::string_view name) const {
  for (const ClaimLine& claim : claims)
    if (claim.name == name) return &claim;
  return nullptr;
}

Result<ClaimsBlock> parse_claims(std::string_view text, int line) {
  return Parser().all(text, line);
}

std::string to_text(const ClaimsBlock& block) {
  std::string out = std::string(kClaimsBegin) + "\n";
  for (const RunLine& run : block.runs)
    out += fmt::format("run {} = {} sha256 {}\n", run.name, run.uid, run.digest);
  for (const ClaimLine& claim : block.claims)
    out += fmt::format("{} = {}\n", claim.name, text_of(claim));
  for (const PlotLine& plot : block.plots)
    out += plot.is_curve ? fmt::format("plot {} = curve of {} | {} | {}\n", plot.name,
                                       plot.curve.run, plot.curve.metric, pattern_text(plot.curve))
                         : fmt::format("plot {} = bars {}\n", plot.name, fmt::join(plot.bars, " "));
  return out + "-->\n";
}

}  // namespace millrace::lab
