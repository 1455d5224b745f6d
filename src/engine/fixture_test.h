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

// A device that fails at what it is told to, once.
class FaultyDevice final : public Device {
 public:
  enum class Fails { nothing, upload, run, wait };
  explicit FaultyDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}
  // With `run`: in front of the step, or (`late`) when all of it has been computed.
  void fail_at(Fails what, bool late = false) {
    fails_ = what;
    is_late_ = late;
  }

  DeviceKind kind() const override { return device_->kind(); }
  std::string_view name() const override { return device_->name(); }
  int n_lanes() const override { return device_->n_lanes(); }
  Result<DeviceMemory> allocate(size_t bytes, Pages pages) override {
    return device_->allocate(bytes, pages);
  }
  Status upload(void* to, const void* from, size_t bytes) override;
  Status read(void* to, const void* from, size_t bytes) override {
    return device_->read(to, from, bytes);
  }
  Status copy(void* to, const void* from, size_t bytes) override {
    return device_->copy(to, from, bytes);
  }
  Status wait() override;
  Status prepare(Program& program, size_t least_bytes) override {
    return device_->prepare(program, least_bytes);
  }
  Status run(Program& program, size_t begin, size_t end, const Program* then) override;
  Result<std::unique_ptr<Graph>> record(const Program& program, size_t begin, size_t end) override {
    return device_->record(program, begin, end);
  }
  Status replay(const Graph& graph) override { return device_->replay(graph); }

 private:
  Status fault(Fails what);

  std::unique_ptr<Device> device_;
  Fails fails_ = Fails::nothing;
  bool is_late_ = false;
};

// Null after a failed expectation. With `faulty` that device, whose owner is the result.
std::unique_ptr<Loaded> load(const std::string& path, int n_lanes, const EngineOptions& options,
                             FaultyDevice** faulty = nullptr);

// Draws outside a step.
void draw(Sampler& sampler, Device& device, const float* logits, std::span<const SampleRow> rows,
          std::span<Sampled> out);

}  // namespace millrace
