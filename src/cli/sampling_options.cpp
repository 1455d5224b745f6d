#include "cli/sampling_options.h"

namespace millrace::cli {

void add_sampling_options(CLI::App& command, Generation& generation) {
  Sampling& s = generation.sampling;
  CLI::Option_group* group = command.add_option_group("Sampling");
  group->add_option("--temperature,--temp", s.temperature, "0: always the most likely token")
      ->capture_default_str();
  group->add_option("--top-k", s.top_k, "Among this many of the most likely; 0: off")
      ->capture_default_str();
  group->add_option("--top-p", s.top_p, "Among the fewest that hold this share; 1: off")
      ->capture_default_str();
  group->add_option("--min-p", s.min_p, "At least this share of the most likely; 0: off")
      ->capture_default_str();
  group->add_option("--repeat-penalty", s.repeat_penalty, "Of tokens that were said; 1: off")
      ->capture_default_str();
  group->add_option("--presence-penalty", s.presence_penalty, "Of tokens that were said; 0: off")
      ->capture_default_str();
  group
      ->add_option("--frequency-penalty", s.frequency_penalty,
                   "Of tokens that were said, each time; 0: off")
      ->capture_default_str();
  group
      ->add_option("--repeat-last-n", s.penalty_tokens,
                   "How many tokens back the penalties look; -1: to the start")
      ->capture_default_str();
  group->add_option("-s,--seed", s.seed, "The same seed gives the same text")
      ->capture_default_str();
  group->add_option("--stop", generation.stops, "Text that ends the answer; can be repeated")
      ->take_all();
}

}  // namespace millrace::cli
