#include "engine/fixture_test.h"

#include <gtest/gtest.h>

namespace millrace {

std::string fixture(const std::string& name) {
  return std::string(MILLRACE_FIXTURES) + "/models/" + name;
}

std::unique_ptr<Loaded> load(const std::string& path, int n_lanes, const EngineOptions& options) {
  auto out = std::make_unique<Loaded>();
  out->team = std::make_unique<Team>(n_lanes);
  auto file = ModelFile::open(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  if (!file.ok()) return nullptr;
  auto engine = Engine::load(std::move(file).value(), *out->team, out->pick_from(), options);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  if (!engine.ok()) return nullptr;
  out->engine = std::move(engine).value();
  return out;
}

}  // namespace millrace
