#include "cli/sampling_options.h"

namespace millrace::cli {

void add_sampling_options(Command& command, Generation& generation) {
  Sampling& s = generation.sampling;
  Command group = command.group("Sampling");
  group.option("--temperature,--temp", s.temperature, "0: always the most likely token")
      .show_default();
  group.option("--top-k", s.top_k, "Among this many of the most likely; 0: off").show_default();
  group.option("--top-p", s.top_p, "Among the fewest that hold this share; 1: off").show_default();
  group.option("--min-p", s.min_p, "At least this share of the most likely; 0: off").show_default();
  group.option("--repeat-penalty", s.repeat_penalty, "Of tokens that were said; 1: off")
      .show_default();
  group.option("--presence-penalty", s.presence_penalty, "Of tokens that were said; 0: off")
      .show_default();
  group
      .option("--frequency-penalty", s.frequency_penalty,
              "Of tokens that were said, each time; 0: off")
      .show_default();
  group
      .option("--repeat-last-n", s.penalty_tokens,
              "How many tokens back the penalties look; -1: to the start")
      .show_default();
  group.option("-s,--seed", s.seed, "The same seed gives the same text").show_default();
  group.option("--stop", generation.stops, "Text that ends the answer; can be repeated").take_all();
}

}  // namespace millrace::cli
