#include "cli/sampling_options.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <random>

namespace millrace::cli {
namespace {

// -1 becomes a seed that is said, so that the text can be had again.
std::string read_seed(std::string& value) {
  uint64_t seed = 0;
  const char* end = value.data() + value.size();
  const auto [read, fault] = std::from_chars(value.data(), end, seed);
  if (fault == std::errc() && read == end) return "";
  if (value != "-1")
    return fmt::format(
        "'{}' is not a seed: give a whole number from 0 to {}, or -1 for a random one", value,
        std::numeric_limits<uint64_t>::max());
  value = std::to_string(std::random_device()());
  fmt::print(stderr, "millrace: seed {}\n", value);
  return "";
}

}  // namespace

void add_sampling_options(Command& command, Generation& generation) {
  Sampling& s = generation.sampling;
  Command group = command.group("Sampling");
  group
      .option("--temperature,--temp", s.temperature,
              "Sampling temperature; 0 always takes the most likely token")
      .show_default();
  group.option("--top-k", s.top_k, "Top-k sampling: keep the N most likely tokens; 0 turns it off")
      .show_default();
  group
      .option("--top-p", s.top_p,
              "Nucleus sampling: keep the smallest set of tokens with this probability; 1 turns it "
              "off")
      .show_default();
  group
      .option("--min-p", s.min_p,
              "Drop tokens that are less likely than this fraction of the most likely one; 0 turns "
              "it off")
      .show_default();
  group
      .option("--repeat-penalty", s.repeat_penalty,
              "Divide the score of tokens that already occurred by this; 1 turns it off")
      .show_default();
  group
      .option("--presence-penalty", s.presence_penalty,
              "Subtract this from the score of tokens that already occurred; 0 turns it off")
      .show_default();
  group
      .option("--frequency-penalty", s.frequency_penalty,
              "Subtract this from a token's score for each time it occurred; 0 turns it off")
      .show_default();
  group
      .option("--repeat-last-n", s.penalty_tokens,
              "How many of the last tokens the penalties look at; -1 for all")
      .at_least(-1)
      .show_default();
  group
      .option("-s,--seed", s.seed,
              "Random seed: the same seed gives the same text; -1 draws one and prints it")
      .rewrite(read_seed)
      .show_default();
  group
      .option("--stop", generation.stops,
              "Stop before this text; repeat the option for several texts")
      .take_all();
}

}  // namespace millrace::cli
