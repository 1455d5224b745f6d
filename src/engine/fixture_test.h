// What tests need to run a small model: a folder of tests/fixtures/models, a team, an engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/sampler.h"

namespace millrace {

struct Loaded {
  Machine machine = find_machine();
  Profile profile;
  Force force;
  std::unique_ptr<Team> team;
  std::unique_ptr<Device> device;
  std::unique_ptr<PickFrom> from;
  std::unique_ptr<Engine> engine;

  const PickFrom& pick_from() const { return *from; }
};

// The folder of the fixture model with this name; of all of them for "".
std::string fixture(const std::string& name);

std::vector<std::string> fixtures();  // their names

// The small trained model that comes with the program; it may not be there.
std::string tiny_model();

// A model of random weights in a file of its own, removed at the end. The shapes are those of
// `millrace make-model`, for a context of 4096 tokens;
// `window` replaces their own where it is not 0.
class MadeFile {
 public:
  MadeFile(std::string_view shape, std::string_view type, int64_t window = 0, uint64_t seed = 0);
  ~MadeFile();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Null after a failed expectation.
std::unique_ptr<Loaded> load(const std::string& path, int n_lanes, const EngineOptions& options);

// Draws outside a step.
void draw(Sampler& sampler, Device& device, const float* logits, std::span<const SampleRow> rows,
          std::span<Sampled> out);

}  // namespace millrace
