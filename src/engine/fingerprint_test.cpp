// What a context's KV is kept under: it changes with all that its bits depend on, and with nothing
// else.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/hash.h"
#include "engine/fixture_test.h"
#include "kernels/classes.h"

namespace millrace {
namespace {

struct Names {
  std::string fingerprint, root;
  bool operator==(const Names&) const = default;
};

Names names_of(const std::string& path, int n_lanes = 1, const EngineOptions& options = {}) {
  auto loaded = load(path, n_lanes, options);
  if (loaded == nullptr) return {};
  return {loaded->engine->fingerprint(), loaded->engine->root()};
}

TEST(Fingerprint, stays_with_lanes_loads_and_batch_sizes) {
  const MadeFile file("tiny-llama", "q4_k_m");
  const Names names = names_of(file.path());
  EXPECT_EQ(names_of(file.path()), names);
  for (const int n_lanes : {2, 3, 5}) EXPECT_EQ(names_of(file.path(), n_lanes), names) << n_lanes;
  EXPECT_EQ(names_of(file.path(), 1, {.n_ctx = 100, .max_seqs = 3, .max_rows = 7}), names);
  EXPECT_EQ(names_of(file.path(), 2, {.max_rows = 2000, .max_outputs = 64}), names);
  const MadeFile copy("tiny-llama", "q4_k_m", 4096);  // a window that no context reaches is one
  EXPECT_NE(names_of(copy.path()).root, names.root);
}

TEST(Fingerprint, changes_with_the_kv_type) {
  const MadeFile file("tiny-llama", "q4_0");
  const Names names = names_of(file.path());
  const Names wide = names_of(file.path(), 1, {.kv_type = DType::f32});
  EXPECT_NE(wide.fingerprint, names.fingerprint);
  EXPECT_NE(wide.root, names.root);
}

TEST(Fingerprint, changes_with_the_classes_in_use) {
  const MadeFile quantised("tiny-llama", "q4_0"), floats("tiny-llama", "f16");
  EXPECT_NE(names_of(quantised.path()).fingerprint, names_of(floats.path()).fingerprint);
}

void change_byte(const std::string& path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const auto byte = static_cast<char>(file.get() ^ 1);
  file.seekp(at);
  file.put(byte);
}

// Bytes of tensors: the last of the file, and others before it.
TEST(Root, changes_with_one_byte_of_the_weights) {
  const MadeFile file("tiny-qwen3moe", "q8_0");
  const Names names = names_of(file.path());
  const auto size = static_cast<int64_t>(std::filesystem::file_size(file.path()));
  for (const int64_t from_end : {int64_t{1}, size / 7, size / 3, size / 2}) {
    change_byte(file.path(), size - from_end);
    const Names other = names_of(file.path());
    EXPECT_EQ(other.fingerprint, names.fingerprint);
    EXPECT_NE(other.root, names.root) << from_end;
    change_byte(file.path(), size - from_end);
  }
  EXPECT_EQ(names_of(file.path()), names);
}

// The fixture with something in its config.json replaced.
std::string root_with(const std::string& name, const std::string& what, const std::string& by) {
  const std::string folder = fmt::format("{}/{}_{}", testing::TempDir(), name, getpid());
  std::filesystem::copy(fixture(name), folder);
  std::stringstream text;
  text << std::ifstream(folder + "/config.json").rdbuf();
  std::string config = text.str();
  const size_t at = config.find(what);
  EXPECT_NE(at, config.npos) << what;
  if (at != config.npos) config.replace(at, what.size(), by);
  std::ofstream(folder + "/config.json") << config;
  const std::string root = names_of(folder).root;
  std::filesystem::remove_all(folder);
  return root;
}

TEST(Root, changes_with_the_rotary_embedding_and_the_norm) {
  const std::string length = "\"original_max_position_embeddings\": ", eps = "\"rms_norm_eps\": ";
  const std::string factor = "\"factor\": ";
  for (const std::string name : {"qwen3_yarn", "llama_untied_llama3_rope"}) {
    const std::string root = root_with(name, length, length);
    EXPECT_EQ(root, names_of(fixture(name)).root) << "of the copy";
    EXPECT_NE(root_with(name, length + "32", length + "48"), root);
    EXPECT_NE(root_with(name, eps + "1e-05", eps + "2e-05"), root);
  }
  EXPECT_NE(root_with("llama_untied_llama3_rope", factor + "8.0", factor + "4.0"),
            names_of(fixture("llama_untied_llama3_rope")).root);
}

// The fingerprint as it is defined, and as it would be with a class at its next revision.
TEST(Fingerprint, changes_with_the_revision_of_a_class) {
  const MadeFile file("tiny-llama", "q4_0");
  auto loaded = load(file.path(), 1, {});
  ASSERT_NE(loaded, nullptr);
  auto classes = loaded->engine->network().program().lowered().classes();
  classes.push_back("cpu.sample.blocks1024");
  const auto hashed = [&](std::string_view raised) {
    std::string text = "cpu";
    for (const std::string_view name : classes) {
      if (name == classes.back()) text += " kv.f16";
      text += fmt::format(" {}.{}", name, revision_of(name) + (name == raised ? 1 : 0));
    }
    return hash128(text);
  };
  EXPECT_EQ(loaded->engine->fingerprint(), hashed(""));
  for (const std::string_view name : classes) EXPECT_NE(hashed(name), hashed("")) << name;
}

}  // namespace
}  // namespace millrace
