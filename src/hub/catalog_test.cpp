// Made-up homes with every program's layout, and what is wrong with them.
#include "hub/catalog.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "files/gguf_name.h"
#include "files/small_file.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

class CatalogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string form = testing::TempDir() + "millrace_home_XXXXXX";
    ASSERT_NE(mkdtemp(form.data()), nullptr);
    home_ = form;
    environment_.home = home_.string();
    environment_.xdg_cache_home = (home_ / ".cache").string();
    environment_.hub_cache = (home_ / ".cache/huggingface/hub").string();
    environment_.llama_cache = (home_ / ".cache/llama.cpp").string();
    environment_.ollama_models = (home_ / ".ollama/models").string();
  }
  void TearDown() override { fs::remove_all(home_); }

  void write(const std::string& path, const std::string& text = "GGUF") {
    fs::create_directories((home_ / path).parent_path());
    std::ofstream(home_ / path) << text;
  }
  std::string at(const std::string& path) const { return (home_ / path).string(); }
  Catalog find() const { return find_models(environment_); }
  std::string path_of(const std::string& name) const {
    const auto path = resolve_model(name, find());
    return path.ok() ? path.value() : "error: " + std::string(path.status().message());
  }
  std::string names() const {
    std::string out;
    for (const auto& entry : find().entries) out += entry.name + " ";
    return out;
  }

  fs::path home_;
  Environment environment_;
};

const std::string kDigest(64, 'a');
const std::string kOllama = ".ollama/models/";

std::string manifest(const std::string& digest) {
  return R"({"schemaVersion":2,"config":{"digest":"sha256:)" + std::string(64, 'c') +
         R"("},"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"x"},)"
         R"({"mediaType":"application/vnd.ollama.image.model","digest":")" +
         digest + R"("}]})";
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(CatalogTest, FindsWhatComesWithTheProgram) {
  environment_.shipped = at("share/millrace");
  EXPECT_TRUE(holds(path_of("tiny"), "share/millrace")) << "and says where it should be";
  write("share/millrace/millrace-tiny.gguf");
  write("share/millrace/README.md");
  write("share/millrace/other.gguf");
  EXPECT_EQ(names(), "tiny ");
  EXPECT_EQ(path_of("tiny"), at("share/millrace/millrace-tiny.gguf"));
  EXPECT_EQ(find_shipped_models(environment_).entries[0].store, "shipped");
}

TEST_F(CatalogTest, FindsOurOwn) {
  const std::string own = ".cache/millrace/models/";
  write(own + "smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf");
  write(own + "hf/Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf", "GGUF....");
  write(own + "mine.gguf");
  write(own + ".pull-123/half.gguf");
  write(own + "smollm2-135m/other.gguf.part");
  EXPECT_EQ(names(), "mine smollm2-135m Qwen/Qwen3-0.6B-GGUF:Q8_0 ");
  const Catalog catalog = find();
  EXPECT_EQ(catalog.entries[1].type, "gguf Q4_1");
  EXPECT_EQ(catalog.entries[2].bytes, 8u);
  EXPECT_EQ(path_of("smollm2-135m"), at(own + "smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf"));
  EXPECT_EQ(path_of("hf:Qwen/Qwen3-0.6B-GGUF:Q8_0"),
            at(own + "hf/Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf"));
}

TEST_F(CatalogTest, FindsHuggingFacesSnapshotThatMainNames) {
  const std::string repo = ".cache/huggingface/hub/models--Qwen--Qwen3-0.6B/";
  write(repo + "blobs/1", "0123456789");
  for (const char* revision : {"aaaa", "bbbb"}) {
    write(repo + "snapshots/" + revision + "/config.json", R"({"torch_dtype":"bfloat16"})");
    fs::create_symlink("../../blobs/1",
                       home_ / repo / "snapshots" / revision / "model.safetensors");
  }
  write(repo + "refs/main", "aaaa");
  const Catalog catalog = find();
  ASSERT_EQ(catalog.entries.size(), 1u);
  EXPECT_EQ(catalog.entries[0].type, "safetensors bfloat16");
  EXPECT_EQ(catalog.entries[0].bytes, 10u);
  EXPECT_EQ(path_of("Qwen/Qwen3-0.6B"), at(repo + "snapshots/aaaa"));
  EXPECT_EQ(path_of("qwen3-0.6b"), at(repo + "snapshots/aaaa"));
  fs::remove(home_ / repo / "refs/main");
  fs::last_write_time(home_ / repo / "snapshots/aaaa",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(path_of("Qwen/Qwen3-0.6B"), at(repo + "snapshots/bbbb"));
  write(repo + "refs/main", "../../../../etc");
  EXPECT_EQ(path_of("Qwen/Qwen3-0.6B"), at(repo + "snapshots/bbbb"));
}

TEST_F(CatalogTest, ListsASplitModelOnceAndOnlyWhole) {
  const std::string repo = ".lmstudio/models/me/Big-GGUF/";
  write(repo + "Q4_K_M/Big-Q4_K_M-00001-of-00002.gguf");
  EXPECT_EQ(names(), "");
  write(repo + "Q4_K_M/Big-Q4_K_M-00002-of-00002.gguf");
  write(repo + "mmproj-Big-F16.gguf");
  EXPECT_EQ(names(), "me/Big-GGUF:Q4_K_M ");
  EXPECT_EQ(find().entries[0].bytes, 8u);
  EXPECT_EQ(path_of("big"), at(repo + "Q4_K_M/Big-Q4_K_M-00001-of-00002.gguf"));
}

TEST_F(CatalogTest, FindsLlamaCppsOldAndNewLayout) {
  write(".cache/llama.cpp/ggml-org_gemma-3-1b_gemma-3-1b-Q4_K_M.gguf");
  write(".cache/llama.cpp/models--a--b/snapshots/1234/b-Q8_0.gguf");
  EXPECT_EQ(names(), "ggml-org_gemma-3-1b_gemma-3-1b-Q4_K_M a/b:Q8_0 ");
}

TEST_F(CatalogTest, FindsOllamas) {
  const std::string manifests = kOllama + "manifests/registry.ollama.ai/";
  write(kOllama + "blobs/sha256-" + kDigest, "12345");
  write(kOllama + "blobs/sha256-" + std::string(64, 'c'), R"({"file_type":"Q4_0"})");
  write(manifests + "library/llama3.2/latest", manifest("sha256:" + kDigest));
  write(manifests + "library/llama3.2/1b", manifest("sha256:" + kDigest));
  write(manifests + "someone/llama3.2/q4", manifest("sha256:" + kDigest));
  EXPECT_EQ(names(), "llama3.2:1b llama3.2:latest someone/llama3.2:q4 ");
  EXPECT_EQ(find().entries[0].type, "gguf Q4_0");
  EXPECT_EQ(path_of("llama3.2"), at(kOllama + "blobs/sha256-" + kDigest));
  EXPECT_EQ(path_of("someone/llama3.2"), at(kOllama + "blobs/sha256-" + kDigest));
}

TEST_F(CatalogTest, HostileManifestsNameNothing) {
  const std::string library = kOllama + "manifests/registry.ollama.ai/library/";
  write("secret.gguf");
  const std::string huge(2 << 20, ' ');
  const std::string texts[] = {"",
                               "[]",
                               "{",
                               R"({"layers":7})",
                               R"({"layers":[1,null,{}]})",
                               std::string(500'000, '['),
                               manifest("../../../../secret.gguf"),
                               manifest("sha256:../../../../../../secret.gguf"),
                               manifest("sha256:" + std::string(63, 'a') + "/"),
                               manifest("sha256:" + kDigest),
                               huge + manifest("sha256:" + kDigest)};
  int i = 0;
  for (const std::string& text : texts) write(library + "m/" + std::to_string(i++), text);
  fs::create_directories(home_ / library / "m/folder");
  ASSERT_EQ(mkfifo(at(library + "m/pipe").c_str(), 0600), 0);
  EXPECT_EQ(names(), "");
}

TEST_F(CatalogTest, LinksInCirclesEnd) {
  const std::string repo = ".lmstudio/models/me/x";
  write(repo + "/x.gguf");
  for (const char* name : {"a", "b", "c"})
    fs::create_directory_symlink(home_ / repo, home_ / repo / name);
  fs::create_symlink("self.gguf", home_ / repo / "self.gguf");
  fs::create_symlink("nowhere", home_ / repo / "gone.gguf");
  fs::create_directory_symlink(home_, home_ / ".lmstudio/models/home");
  EXPECT_EQ(names(), "me/x:x ");
}

TEST_F(CatalogTest, NamesOnDiskAreFitToShow) {
  write(".cache/millrace/models/e\x1b[31mvil\xff.gguf");
  EXPECT_EQ(names(), "e\\x1b[31mvil\\xff ");
}

TEST_F(CatalogTest, APathComesFirst) {
  write("here/smollm2-135m.gguf");
  write("two/a.gguf");
  write("two/b.gguf");
  fs::create_directories(home_ / "empty");
  EXPECT_EQ(path_of(at("here/smollm2-135m.gguf")), at("here/smollm2-135m.gguf"));
  EXPECT_EQ(path_of(at("here")), at("here/smollm2-135m.gguf"));
  EXPECT_TRUE(holds(path_of(at("two")), "contains 2 models"));
  EXPECT_TRUE(holds(path_of(at("empty")), "contains no model"));
}

TEST_F(CatalogTest, AnAmbiguousNameListsTheCandidates) {
  write(".lmstudio/models/me/x/x-Q4_0.gguf");
  write(".lmstudio/models/me/x/x-Q8_0.gguf");
  const auto path = resolve_model("me/x", find());
  EXPECT_EQ(path.status().code(), Code::invalid_argument);
  EXPECT_TRUE(holds(path_of("me/x"), "me/x:Q4_0"));
  EXPECT_TRUE(holds(path_of("X"), "me/x:Q8_0"));
  EXPECT_EQ(path_of("X:q8"), at(".lmstudio/models/me/x/x-Q8_0.gguf"));
}

TEST_F(CatalogTest, OfTheSameNameOursIsTaken) {
  write(".lmstudio/models/me/x/x-Q4_0.gguf");
  write(".cache/millrace/models/hf/me/x/x-Q4_0.gguf");
  EXPECT_EQ(path_of("me/x:Q4_0"), at(".cache/millrace/models/hf/me/x/x-Q4_0.gguf"));
}

TEST_F(CatalogTest, AnUnknownNameSaysWhatThereIsAndHowToGetMore) {
  const auto path = resolve_model("nope", find());
  EXPECT_EQ(path.status().code(), Code::not_found);
  EXPECT_TRUE(holds(path_of("nope"), "millrace pull"));
  EXPECT_TRUE(holds(path_of(std::string(kDefaultModel)), "millrace pull smollm2-135m"));
  write(".lmstudio/models/me/x/x-Q4_0.gguf");
  EXPECT_TRUE(holds(path_of("nope"), "me/x:Q4_0"));
  for (const char* odd : {"", "hf:", "../no/such", "/dev/null/x", "\xff\x1b"})
    EXPECT_TRUE(holds(path_of(odd), "error: ")) << odd;
}

TEST(GgufName, ReadsTypeAndPart) {
  const auto quant = [](std::string_view file) { return parse_gguf_name(file)->quant; };
  EXPECT_EQ(quant("SmolLM2-135M-Instruct.Q4_1.gguf"), "Q4_1");
  EXPECT_EQ(quant("sub/Qwen3-30B-A3B-UD-Q4_K_XL.gguf"), "Q4_K_XL");
  EXPECT_EQ(quant("openchat_3.5_q5_k_m.gguf"), "Q5_K_M");
  EXPECT_EQ(quant("gpt-oss-20b-mxfp4.gguf"), "MXFP4");
  EXPECT_EQ(quant("gemma-3-270m-it-qat-Q4_0.gguf"), "Q4_0");
  EXPECT_EQ(quant("model-IQ3_XXS-imat.gguf"), "IQ3_XXS");
  EXPECT_EQ(quant("Qwen3-0.6B-BF16.gguf"), "BF16");
  EXPECT_EQ(quant("ggml-vocab-llama-bpe.gguf"), "");
  EXPECT_EQ(quant("q.gguf"), "");
  EXPECT_EQ(quant("a__b_.gguf"), "");
  const auto part = parse_gguf_name("x-Q8_0-00002-of-00003.gguf");
  EXPECT_EQ(part->stem, "x-Q8_0");
  EXPECT_EQ(part->quant, "Q8_0");
  EXPECT_EQ(part->part, 2);
  EXPECT_EQ(part->n_parts, 3);
  EXPECT_EQ(part_path("d/x-Q8_0-00002-of-00003.gguf", 3), "d/x-Q8_0-00003-of-00003.gguf");
  for (const char* no : {"", ".gguf", "x.ggu", "x-00004-of-00003.gguf", "x-00000-of-00001.gguf",
                         "x-00001-of-99999.gguf", "mmproj-x.gguf", "x.gguf.part"})
    EXPECT_FALSE(parse_gguf_name(no)) << no;
}

TEST(Environment, FollowsTheVariables) {
  const Environment plain = environment_from([](const char* name) -> const char* {
    return std::string_view(name) == "HOME" ? "/home/me" : nullptr;
  });
  EXPECT_EQ(own_models(plain), "/home/me/.cache/millrace/models");
  EXPECT_EQ(plain.hub_cache, "/home/me/.cache/huggingface/hub");
  EXPECT_EQ(plain.hub_endpoint, "https://huggingface.co");
  EXPECT_FALSE(plain.hub_offline);
  const Environment set = environment_from([](const char* name) -> const char* {
    const std::string_view n(name);
    if (n == "HF_HOME") return "/data/hf";
    if (n == "HF_ENDPOINT") return "http://localhost:1/";
    if (n == "HF_HUB_OFFLINE") return "1";
    if (n == "HF_TOKEN") return "bad\r\ntoken";
    return nullptr;
  });
  EXPECT_EQ(set.hub_cache, "/data/hf/hub");
  EXPECT_EQ(set.hub_endpoint, "http://localhost:1");
  EXPECT_TRUE(set.hub_offline);
  EXPECT_EQ(set.hub_token, "");
}

}  // namespace
}  // namespace millrace
