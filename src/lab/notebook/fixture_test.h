// What the notebook's tests share: a folder that goes away, and runs with made-up samples, so that
// what follows from them is known.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/sqlite.h"
#include "lab/build_info.h"
#include "lab/notebook/exchange.h"
#include "lab/notebook/notebook.h"
#include "machine/json.h"

namespace millrace::lab {

class NotebookFixture : public testing::Test {
 protected:
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("millrace_notebook_{}", getpid());
  const std::filesystem::path file = folder / "lab.db";
  Machine machine = test_machine();

  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  static Machine test_machine() {
    Machine out;
    out.cpu_name = "a CPU";
    return out;
  }

  Notebook open() {
    auto notebook = Notebook::open(file);
    EXPECT_TRUE(notebook.ok()) << notebook.status().message();
    return *std::move(notebook);
  }

  // 20 samples around a time, with no two alike; a quiet machine's noise.
  static Metric metric(const std::string& variant, double us,
                       const std::string& problem = "1x576") {
    std::vector<double> samples;
    for (int i = 0; i < 20; ++i) samples.push_back(us * (1 + 0.0001 * ((i * 7) % 20 - 10)));
    Metric out = metric_of(Subject{"op", "rmsnorm", problem, variant, "cold", 2}, "time", "us",
                           "lower", samples);
    out.noise = 0.002;
    out.twin = samples;
    out.kernel =
        KernelFacts{.key = "k", .numerics = "n", .layout = "", .isa = "avx2", .bound = "bytes"};
    return out;
  }

  RunHead head() const {
    return {"cpu", fingerprint(machine), to_json(machine), "abc", to_json(build_info()), "bench"};
  }

  int64_t add_run(Notebook& notebook, const std::vector<Metric>& metrics, int64_t hypothesis = 0,
                  const std::string& role = "candidate", const std::string& state = "done") {
    RunHead with = head();
    if (hypothesis > 0) {
      Experiment experiment;
      experiment.hypothesis = hypothesis;
      experiment.role = role;
      experiment.command = "bench";
      with.experiment = notebook.add(experiment).value();
    }
    const int64_t id = notebook.store().begin_run(with).value();
    EXPECT_TRUE(notebook.store().add_ceilings(id, "before", "{}").ok());
    EXPECT_TRUE(notebook.store().add_metrics(id, metrics).ok());
    if (!state.empty()) {
      EXPECT_TRUE(notebook.store().end_run(id, state).ok());
    }
    return id;
  }

  static Hypothesis hypothesis(const std::string& effect) {
    Hypothesis out;
    out.text = "avx512 is faster";
    out.prediction.name = "rmsnorm";
    out.prediction.variant_a = "avx2";
    out.prediction.variant_b = "avx512";
    EXPECT_TRUE(parse_effect(effect, out.prediction).ok()) << effect;
    return out;
  }

  // As another program would write: with triggers, without foreign keys.
  std::string sql(const std::string& statements) {
    sqlite3* db = nullptr;
    sqlite3_open(file.c_str(), &db);
    char* message = nullptr;
    sqlite3_exec(db, statements.c_str(), nullptr, nullptr, &message);
    const std::string out = message == nullptr ? "" : message;
    sqlite3_free(message);
    sqlite3_close(db);
    return out;
  }

  static std::string exported(Notebook& notebook, Exported* counts = nullptr) {
    std::string text;
    auto out = export_notebook(notebook, [&](std::string_view line) {
      text += line;
      return Status();
    });
    EXPECT_TRUE(out.ok()) << out.status().message();
    if (counts != nullptr) *counts = *std::move(out);
    return text;
  }
  static Result<Imported> import_text(Notebook& notebook, const std::string& text) {
    std::istringstream in(text);
    return import_notebook(notebook, in, "x.jsonl");
  }
};

}  // namespace millrace::lab
