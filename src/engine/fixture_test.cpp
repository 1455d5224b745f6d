#include "engine/fixture_test.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "model/architecture.h"
#include "model/make_model.h"

namespace millrace {

std::string fixture(const std::string& name) {
  return std::string(MILLRACE_FIXTURES) + "/models/" + name;
}

std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture("")))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  return names;
}

std::string tiny_model() {
  return std::string(MILLRACE_MODELS) + "/millrace-tiny.gguf";
}

MadeFile::MadeFile(std::string_view shape, std::string_view type, int64_t window, uint64_t seed)
    : path_(fmt::format("{}/{}_{}_{}_{}_{}.gguf", testing::TempDir(), shape, type, window, seed,
                        getpid())) {
  ModelShape s = model_shape_named(shape).value();
  s.n_ctx = 4096;
  if (window != 0) s.window = window;
  const auto made =
      make_model(s, path_, {.type = quant_type_named(type).value(), .seed = seed, .stream = {}});
  EXPECT_TRUE(made.ok()) << made.status().message();
}

MadeFile::~MadeFile() {
  std::filesystem::remove(path_);
}

Status FaultyDevice::fault(Fails what) {
  if (fails_ != what) return {};
  fails_ = Fails::nothing;
  return error(Code::io_error, "made to fail");
}

Status FaultyDevice::upload(void* to, const void* from, size_t bytes) {
  MILLRACE_TRY(fault(Fails::upload));
  return device_->upload(to, from, bytes);
}

Status FaultyDevice::run(Program& program, size_t begin, size_t end, const Program* then) {
  if (!is_late_) MILLRACE_TRY(fault(Fails::run));
  MILLRACE_TRY(device_->run(program, begin, end, then));
  return is_late_ ? fault(Fails::run) : Status();
}

Status FaultyDevice::wait() {
  const Status waited = device_->wait();
  MILLRACE_TRY(fault(Fails::wait));
  return waited;
}

std::unique_ptr<Loaded> load(const std::string& path, int n_lanes, const EngineOptions& options,
                             FaultyDevice** faulty) {
  auto out = std::make_unique<Loaded>();
  out->team = std::make_unique<Team>(n_lanes);
  auto file = open_model_file(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  if (!file.ok()) return nullptr;
  out->device = cpu_device(*out->team);
  if (faulty != nullptr) {
    auto device = std::make_unique<FaultyDevice>(std::move(out->device));
    *faulty = device.get();
    out->device = std::move(device);
  }
  out->from = std::make_unique<PickFrom>(PickFrom{out->machine, out->profile, out->force});
  auto engine =
      Engine::load(std::move(file).value(), *out->device, *out->team, out->pick_from(), options);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  if (!engine.ok()) return nullptr;
  out->engine = std::move(engine).value();
  return out;
}

void draw(Sampler& sampler, Device& device, const float* logits, std::span<const SampleRow> rows,
          std::span<Sampled> out) {
  const auto program = sampler.gather(logits, rows);
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_TRUE(device.run(*program.value(), 0, 1).ok());
  sampler.take(out);
}

}  // namespace millrace
