// The bits of every CPU numerics class, over all its ops' small cases, against tests/golden/
// classes.txt. Each class is computed by the fastest variants of this machine and once more by
// those that every machine with AVX2 has, so one table holds for all of them. Classes of CUDA are
// not in it: where these tests run there is no GPU, and their bits belong to an architecture.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "base/hash.h"
#include "kernels/classes.h"
#include "lab/bytes.h"
#include "lab/selftest.h"
#include "lab/witness.h"

namespace millrace::lab {
namespace {

constexpr const char* kTable = MILLRACE_GOLDEN "/classes.txt";

bool is_baseline(const Variant& variant) {
  return variant.isa == Isa::generic || variant.isa == Isa::avx2;
}

// The first in table order, among all or among the baseline's.
const Variant* variant_for(const Runner& runner, const Op& op, std::string_view numerics,
                           Instance& instance, bool only_baseline) {
  for (const Variant& variant : op.variants())
    if (variant.numerics == numerics && runner.owns(variant) && runner.has(variant) &&
        (!only_baseline || is_baseline(variant)) && takes(variant, instance))
      return &variant;
  return nullptr;
}

// Outputs of the op's small cases that the class computes with AVX2; empty when it has none.
std::string outputs_text(Runner& runner, const Op& op, std::string_view numerics, bool baseline) {
  std::string text;
  for (Case& problem : op.cases()) {
    if (problem.timed) continue;
    const std::string name = problem.name;
    auto made = Instance::make(op, std::move(problem), kSelftestSeed);
    if (!made.ok()) return std::string(made.status().message());
    Instance& it = made.value();
    if (variant_for(runner, op, numerics, it, true) == nullptr) continue;
    const Variant* variant = variant_for(runner, op, numerics, it, baseline);
    if (const Status status = runner.run(it, *variant, 1); !status.ok())
      return std::string(status.message());
    text += fmt::format("{} {}", op.name, name);
    for (size_t i = 0; i < it.problem().ports.size(); ++i)
      if (const Port& port = it.problem().ports[i]; is_output(port.role))
        text += fmt::format(" {:016x}", hash64({it.port(i), bytes_of(port)}));
    text += '\n';
  }
  return text;
}

bool has_class(const Op& op, std::string_view numerics) {
  const auto variants = op.variants();
  return std::any_of(variants.begin(), variants.end(),
                     [&](const Variant& variant) { return variant.numerics == numerics; });
}

// A class can have several ops: products, and those of experts.
std::string hash_of_class(Runner& runner, std::string_view numerics, bool baseline) {
  std::string text;
  for (const Op* op : ops())
    if (has_class(*op, numerics)) text += outputs_text(runner, *op, numerics, baseline);
  return text.empty() ? "none" : hash128(text);
}

std::set<std::string_view> cpu_classes(const Runner& runner) {
  std::set<std::string_view> out;
  for (const Op* op : ops())
    for (const Variant& variant : op->variants())
      if (runner.owns(variant) && variant.numerics != kReference) out.insert(variant.numerics);
  return out;
}

std::map<std::string, std::string> read_table() {
  std::map<std::string, std::string> lines;
  std::ifstream in(kTable);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') lines[line.substr(0, line.find(' '))] = line;
  return lines;
}

std::string advice(std::string_view numerics, const std::string& line) {
  return fmt::format(
      "the bits of {} are not those of {}.\nIf the arithmetic was meant to change, raise its "
      "revision in src/kernels/classes.cpp: KV and checkpoints of the old one are then a miss.\n"
      "If only its cases changed, the revision stays. Then put this line into the table:\n{}",
      numerics, kTable, line);
}

TEST(NumericsClasses, give_the_bits_of_their_revision) {
  const Machine machine = find_machine();
  if (!machine.has(Isa::avx2)) GTEST_SKIP() << "this CPU has no avx2";
  const auto runner = cpu_runner(machine);
  auto table = read_table();
  for (const std::string_view numerics : cpu_classes(*runner)) {
    const std::string hash = hash_of_class(*runner, numerics, false);
    EXPECT_EQ(hash_of_class(*runner, numerics, true), hash)
        << numerics << " differs between the variants of this machine";
    const std::string line = fmt::format("{} {} {}", numerics, revision_of(numerics), hash);
    EXPECT_EQ(table[std::string(numerics)], line) << advice(numerics, line);
    table.erase(std::string(numerics));
  }
  for (const auto& [numerics, line] : table)
    ADD_FAILURE() << kTable << " has a class that there is no more: " << line;
}

// Whether equal bits decide, by the op's witness or by its reference, in every case the class has.
bool is_witnessed(const Op& op, const Variant& variant) {
  for (const Case& problem : op.cases())
    if (takes(variant, problem) && witness_for(op, problem, variant) == nullptr) return false;
  return true;
}

TEST(NumericsClasses, have_witnesses) {
  const Machine machine = find_machine();
  const auto runner = cpu_runner(machine);
  for (const Op* op : ops())
    for (const Variant& variant : op->variants()) {
      if (!runner->owns(variant) || variant.numerics == kReference) continue;
      EXPECT_TRUE(is_witnessed(*op, variant))
          << op->name << " " << variant.name << ": " << variant.numerics;
    }
}

}  // namespace
}  // namespace millrace::lab
