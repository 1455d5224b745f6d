// Reads the includes of every source and holds them to the house's one direction: a folder of src/
// includes itself and the folders above it; a kernel folder knows another by its public headers
// alone; args.h compiles under NVRTC, which opens no standard header; a third-party library stays
// behind its one folder.
// g++ 12 sees uninitialised members in its own <regex> when it also sanitizes.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kSrc = MILLRACE_SRC;

constexpr std::array<std::string_view, 14> kHouse = {
    "base", "machine", "memory", "tensor", "kernels", "exec", "files",
    "text", "hub",     "model",  "engine", "serve",   "lab",  "cli"};

// What a kernel folder shows to the others: its Args, its contract, the layout of the rows or the
// order of the elements that it defines for them, and its device body without a launch.
constexpr std::array<std::string_view, 5> kPublic = {"args.h", "op.h", "row.h", "order.h",
                                                     "tile.cuh"};

struct Boundary {
  std::string_view header, folder;
};
constexpr std::array<Boundary, 10> kBoundaries = {{{"sqlite3.h", "base"},
                                                   {"xxhash.h", "base"},
                                                   {"CLI/", "cli"},
                                                   {"histedit.h", "cli"},
                                                   {"pcre2.h", "text"},
                                                   {"utf8proc.h", "text"},
                                                   {"curl/", "hub"},
                                                   {"openssl/", "hub"},
                                                   {"liburing.h", "engine"},
                                                   {"boost/", "serve"}}};

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (const auto& part : fs::path(path)) parts.push_back(part.string());
  return parts;
}

// The folder of an op that this path lies in, or "": kernels/<op>/...
std::string op_of(const std::vector<std::string>& parts) {
  return parts.size() > 2 && parts[0] == "kernels" ? parts[1] : "";
}

ptrdiff_t rank_of(const std::string& folder) {
  return std::find(kHouse.begin(), kHouse.end(), folder) - kHouse.begin();
}

std::string fault_of_quoted(const std::string& file, const std::string& target) {
  const auto from = parts_of(file), to = parts_of(target);
  if (!fs::is_regular_file(kSrc / target)) return "is not a path from src/";
  if (rank_of(from[0]) < rank_of(to[0])) return fmt::format("{} lies above {}", from[0], to[0]);
  const std::string from_op = op_of(from), to_op = op_of(to);
  const bool is_public = std::find(kPublic.begin(), kPublic.end(), to.back()) != kPublic.end();
  if (!from_op.empty() && !to_op.empty() && from_op != to_op && !is_public)
    return fmt::format("is private to kernels/{}", to_op);
  return "";
}

std::string fault_of_angled(const std::string& file, const std::string& target) {
  const auto from = parts_of(file);
  if (!op_of(from).empty() && from.back() == "args.h")
    return "is not for args.h: NVRTC has no such header";
  for (const auto& [header, folder] : kBoundaries)
    if (target.starts_with(header) && from[0] != folder)
      return fmt::format("belongs to {}/ alone", folder);
  return "";
}

// One line for each include of `file` (a path from src/) that breaks a rule.
std::vector<std::string> faults_of(const std::string& file, std::istream& text) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*(["<])([^">]+)[">].*)re");
  std::vector<std::string> out;
  std::smatch match;
  for (std::string line; std::getline(text, line);) {
    if (!std::regex_match(line, match, kInclude)) continue;
    const std::string target = match[2];
    const std::string fault =
        match[1] == "\"" ? fault_of_quoted(file, target) : fault_of_angled(file, target);
    if (!fault.empty()) out.push_back(fmt::format("src/{}: {} {}", file, target, fault));
  }
  return out;
}

std::vector<std::string> sources() {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(kSrc)) {
    const std::string kind = entry.path().extension();
    if (kind == ".h" || kind == ".inc" || kind == ".cpp" || kind == ".cu" || kind == ".cuh")
      out.push_back(fs::relative(entry.path(), kSrc));
  }
  return out;
}

TEST(Includes, RunOneWay) {
  const auto files = sources();
  EXPECT_GT(files.size(), 50u);
  for (const auto& file : files) {
    EXPECT_LT(rank_of(parts_of(file)[0]), std::ssize(kHouse))
        << file << " is in no folder of the house";
    std::ifstream text(kSrc / file);
    for (const auto& fault : faults_of(file, text)) ADD_FAILURE() << fault;
  }
}

size_t n_faults(const std::string& file, const std::string& line) {
  std::istringstream text(line);
  return faults_of(file, text).size();
}

TEST(Includes, TheRulesCatchWhatTheyForbid) {
  EXPECT_EQ(n_faults("base/x.cpp", "#include \"machine/isa.h\""), 1u);
  EXPECT_EQ(n_faults("machine/x.cpp", "#include \"isa.h\""), 1u);
  EXPECT_EQ(n_faults("machine/x.cpp", "# include \"base/status.h\"  // why"), 0u);
  EXPECT_EQ(n_faults("kernels/matmul/x.cpp", "#include \"kernels/rmsnorm/floor.h\""), 1u);
  EXPECT_EQ(n_faults("kernels/matmul/x.cpp", "#include \"kernels/rmsnorm/args.h\""), 0u);
  EXPECT_EQ(n_faults("kernels/rmsnorm/x.cpp", "#include \"kernels/rmsnorm/floor.h\""), 0u);
  EXPECT_EQ(n_faults("kernels/rmsnorm/args.h", "#include <cstdint>"), 1u);
  EXPECT_EQ(n_faults("machine/x.cpp", "#include <sqlite3.h>"), 1u);
  EXPECT_EQ(n_faults("base/x.cpp", "#include <sqlite3.h>"), 0u);
}

}  // namespace
