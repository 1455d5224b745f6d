// The program from outside: exit codes, what goes to which stream, bad input.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "lab/notebook/notebook.h"

namespace {

struct Ran {
  int exit_code;
  std::string text;
};

// Runs `millrace ARGS` in a shell, so that ARGS may redirect; without the user's own profile unless
// `before` says so.
Ran millrace(const std::string& args, const std::string& before = "") {
  setenv("MILLRACE_PROFILE", "off", 1);
  const std::string line = before + " " MILLRACE_PROGRAM " " + args;
  std::FILE* pipe = popen(line.c_str(), "r");
  Ran ran{-1, ""};
  char part[4096];
  while (const size_t n = std::fread(part, 1, sizeof part, pipe)) ran.text.append(part, n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ran.exit_code = WEXITSTATUS(status);
  return ran;
}

bool holds(const Ran& ran, const char* part) {
  return ran.text.find(part) != std::string::npos;
}

TEST(Cli, TellsItsVersionAndItsCommands) {
  EXPECT_EQ(millrace("--version").exit_code, 0);
  EXPECT_TRUE(holds(millrace("--version"), "millrace "));
  const Ran help = millrace("--help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"doctor", "selftest"}) EXPECT_TRUE(holds(help, command)) << command;
}

TEST(Cli, WrongArgumentsAreNamedAndExitWithTwo) {
  for (const char* args : {"", "bogus", "--bogus", "doctor --bogus", "doctor extra"}) {
    const Ran ran = millrace(std::string(args) + " 2>/dev/null");
    EXPECT_EQ(ran.exit_code, 2) << args;
    EXPECT_EQ(ran.text, "") << args;
  }
  EXPECT_TRUE(holds(millrace("bogus 2>&1"), "no command 'bogus'"));
  EXPECT_TRUE(holds(millrace("doctor --bogus 2>&1"), "--bogus"));
}

// Names and defaults as people write them, and nothing of how the parser calls its types.
TEST(Cli, HelpIsForPeople) {
  for (const std::string command :
       {"",           "bench",       "chat",      "detokenize", "doctor",   "inspect",
        "logits",     "make-model",  "models",    "perplexity", "pull",     "quantize",
        "run",        "selftest",    "template",  "tokenize",   "lab",      "lab hypothesis",
        "lab run",    "lab verdict", "lab learn", "lab show",   "lab log",  "lab graph",
        "lab export", "lab import",  "post",      "post lint",  "accuracy", "job",
        "job submit", "job follow",  "replay",    "kv"}) {
    const Ran help = millrace(command + " --help");
    EXPECT_EQ(help.exit_code, 0) << command;
    for (const char* noise : {" INT", " FLOAT", "TEXT:", "Excludes", " x 2", "Option Group", "=["})
      EXPECT_FALSE(holds(help, noise)) << command << ": " << noise;
    std::istringstream lines(help.text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
  const Ran chat = millrace("chat --help");
  for (const char* part : {"Usage: millrace chat [OPTIONS] [MODEL]", "\n  -t, --threads N  ",
                           "\n      --top-k N  ", "(default: 0.95)"})
    EXPECT_TRUE(holds(chat, part)) << part << chat.text;
}

TEST(Cli, NumbersOutOfRangeAreRefusedWithTheirRange) {
  const struct {
    const char *args, *says;
  } kRefused[] = {
      {"run -n -5", "--n-predict: -5 is too small; the least is -1"},
      {"chat -n -2", "the least is -1"},
      {"run --seed -2", "or -1 for a random one"},
      {"run -s 18446744073709551616", "from 0 to 18446744073709551615"},
      {"run -s 1.5", "'1.5' is not a seed"},
      {"chat -c 0", "--ctx-size: 0 is out of range; it must be from 1 to "},
      {"run -t many", "--threads: 'many' is not a whole number"},
      {"run --top-p some", "--top-p: 'some' is not a number"},
      {"run --kv-type q8_0", "--kv-type: 'q8_0' is not one of f16, bf16, f32"},
      {"run --what", "unexpected argument: --what\nRun 'millrace run --help'"},
  };
  for (const auto& [args, says] : kRefused) {
    const Ran ran = millrace(std::string(args) + " 2>&1 </dev/null");
    EXPECT_EQ(ran.exit_code, 2) << args;
    EXPECT_TRUE(holds(ran, says)) << args << ": " << ran.text;
  }
}

TEST(Cli, ADrawnSeedIsSaidAndGivesTheTextAgain) {
  const std::string args = "run tiny -t 1 -p Once -n 20 --temperature 2 --top-k 0 --seed ";
  const std::string err = testing::TempDir() + "millrace_seed_" + std::to_string(getpid());
  const Ran drawn = millrace(args + "-1 2>" + err);
  std::ifstream file(err);
  std::string said;
  std::getline(file, said);
  ASSERT_EQ(said.rfind("millrace: seed ", 0), 0u) << said;
  EXPECT_EQ(millrace(args + said.substr(15) + " 2>/dev/null").text, drawn.text);
  EXPECT_NE(millrace(args + "-1 2>/dev/null").text, drawn.text);
  std::remove(err.c_str());
}

TEST(Cli, AContextLongerThanTheTrainedOneIsWarnedOf) {
  EXPECT_EQ(millrace("run tiny -t 1 -p Once -n 1 -c 65536 2>&1 >/dev/null").text, "");
  const Ran ran = millrace("run tiny -t 1 -p Once -n 1 -c 65537 2>&1 >/dev/null");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_TRUE(holds(ran, "longer than the 65536 that the model was trained for")) << ran.text;
}

TEST(Cli, LogitsShowTheTextOfTokens) {
  const Ran ran = millrace("logits tiny -t 1 --tokens 5,10,20 --top 2");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_TRUE(holds(ran, "after token 2 (20 ',')")) << ran.text;
  EXPECT_TRUE(holds(ran, "' and'")) << ran.text;
  // A file without a tokenizer: ids alone.
  const Ran ids = millrace("logits " MILLRACE_FIXTURES "/models/qwen3_untied --tokens 2,1 --top 2");
  EXPECT_EQ(ids.exit_code, 0);
  EXPECT_TRUE(holds(ids, "after token 1 (1):")) << ids.text;
}

TEST(Cli, WithoutAGpuEveryCommandSaysWhatTheDoctorSays) {
  const auto doctor = nlohmann::json::parse(millrace("doctor --json").text, nullptr, false);
  ASSERT_TRUE(doctor.is_object());
  if (!doctor["machine"]["gpus"].empty()) GTEST_SKIP() << "this machine has a GPU";
  const std::string why = doctor["machine"]["gpu_problem"];
  for (const char* command :
       {"bench rmsnorm", "bench --chain", "selftest", "bench tiny", "run -m tiny -p x", "chat tiny",
        "logits tiny --tokens 1", "serve tiny --port 0"}) {
    const std::string device = command == std::string("bench --chain") ? "" : " --device cuda";
    const Ran ran = millrace(command + device + " 2>&1");
    EXPECT_EQ(ran.exit_code, 1) << command;
    EXPECT_EQ(ran.text, "millrace: no GPU: " + why + "\n") << command;
  }
}

TEST(Cli, AnUnknownLogLevelIsRefused) {
  const Ran ran = millrace("doctor 2>&1", "MILLRACE_LOG=loud");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_TRUE(holds(ran, "loud"));
}

TEST(Cli, DoctorPrintsATableWithoutColoursIntoAPipe) {
  const Ran ran = millrace("doctor");
  EXPECT_EQ(ran.exit_code, 0);
  for (const char* part : {"Machine", "Ceilings", "GB/s", "GMAC/s", "Findings"})
    EXPECT_TRUE(holds(ran, part)) << part;
  EXPECT_FALSE(holds(ran, "\x1b["));
}

TEST(Cli, DoctorPrintsJsonAndNothingElse) {
  const Ran ran = millrace("doctor --json");
  EXPECT_EQ(ran.exit_code, 0);
  const auto json = nlohmann::json::parse(ran.text, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_GE(json["machine"]["n_cpus"], 1);
  EXPECT_GT(json["ceilings"]["read_gbps_all"], 0);
  EXPECT_TRUE(json["findings"].is_array());
  EXPECT_TRUE(json["usable"]);
}

TEST(Cli, BenchNamesWhatExistsWhenItIsAskedForSomethingElse) {
  for (const char* args :
       {"bench nope", "bench rmsnorm --case nope", "bench rmsnorm --variant nope",
        "bench --threads 0", "bench rmsnorm --compare run:1 avx2", "selftest --op nope"}) {
    const Ran ran = millrace(std::string(args) + " 2>&1");
    EXPECT_EQ(ran.exit_code, 2) << args << ": " << ran.text;
  }
  EXPECT_TRUE(holds(millrace("bench nope 2>&1"), "rmsnorm"));
  EXPECT_TRUE(holds(millrace("bench rmsnorm --case nope 2>&1"), "1x576_f32"));
  EXPECT_TRUE(holds(millrace("bench rmsnorm --variant nope 2>&1"), "avx2"));
}

TEST(Cli, BenchMeasuresStoresAndCompares) {
  const std::string db = testing::TempDir() + "millrace_cli_" + std::to_string(getpid()) + ".db";
  const std::string args = "bench rmsnorm --case 1x576_f32 --quick --seconds 0.02 --db " + db;
  const Ran first = millrace(args + " --json 2>/dev/null");
  EXPECT_EQ(first.exit_code, 0);
  const auto json = nlohmann::json::parse(first.text, nullptr, false);
  ASSERT_TRUE(json.is_object()) << first.text;
  ASSERT_FALSE(json["rows"].empty());
  EXPECT_GT(json["rows"][0]["floor_percent"], 0);
  EXPECT_EQ(json["run"], 1);
  // A pattern that is no UTF-8: the command line is stored as it is, and printed as JSON can.
  EXPECT_EQ(millrace(args + " --case [1$(printf '\\377')]x576_f32 2>/dev/null").exit_code, 0);
  const Ran verdicts = millrace("bench --compare run:1 run:2 --db " + db);
  EXPECT_EQ(verdicts.exit_code, 0);
  EXPECT_TRUE(holds(verdicts, "1x576_f32")) << verdicts.text;
  // Against itself a run is neither, on any machine.
  const Ran self = millrace("bench --compare run:1 run:1 --db " + db);
  EXPECT_FALSE(holds(self, "FAST") || holds(self, "SLOW")) << self.text;
  EXPECT_TRUE(holds(millrace("lab show --db " + db), "done"));
  EXPECT_TRUE(holds(millrace("lab show run:2 --db " + db), ("millrace " + args).c_str()));
  const Ran listed = millrace("lab show --json --db " + db);
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_TRUE(nlohmann::json::parse(listed.text, nullptr, false).is_array()) << listed.text;
  for (const char* end : {"", "-wal", "-shm"}) std::remove((db + end).c_str());
}

// Runs with made-up samples: the verdicts are known.
TEST(Cli, BenchJudgesStoredRuns) {
  const std::string db = testing::TempDir() + "millrace_runs_" + std::to_string(getpid()) + ".db";
  {
    auto store = millrace::lab::Store::open(db);
    ASSERT_TRUE(store.ok()) << store.status().message();
    for (const double us : {10.0, 5.0, 10.0}) {
      millrace::lab::Row row;
      row.op = "rmsnorm";
      row.problem = "1x576_f32";
      row.variant = "avx2";
      row.mode = "cold";
      row.us = {us, us, us};
      row.samples_us.assign(20, us);
      auto run = store->begin_run({"cpu", "a machine", "{}", "abc", "{}", "bench"});
      ASSERT_TRUE(run.ok());
      ASSERT_TRUE(store->add_rows(*run, {row}).ok());
      ASSERT_TRUE(store->end_run(*run, "done").ok());
    }
  }
  const struct {
    const char *runs, *verdict;
  } kPairs[] = {{"run:1 run:2", "FAST"}, {"run:2 run:1", "SLOW"}, {"run:1 run:3", "SAME"}};
  for (const auto& [runs, verdict] : kPairs) {
    const std::string args = "bench --compare " + std::string(runs) + " --db " + db;
    EXPECT_TRUE(holds(millrace(args), (std::string(verdict) + "\n").c_str())) << runs;
    const auto json = nlohmann::json::parse(millrace(args + " --json").text, nullptr, false);
    ASSERT_EQ(json["verdicts"].size(), 1u) << runs;
    EXPECT_EQ(json["verdicts"][0]["verdict"], verdict) << runs;
  }
  for (const char* end : {"", "-wal", "-shm"}) std::remove((db + end).c_str());
}

TEST(Cli, RunsAreReadAndNeverMade) {
  const std::string db = testing::TempDir() + "millrace_none_" + std::to_string(getpid()) + ".db";
  for (const std::string command : {"lab show", "lab log", "lab graph", "lab export",
                                    "lab verdict 1", "bench --compare run:1 run:2"}) {
    const Ran ran = millrace(command + " --db " + db + " 2>&1");
    EXPECT_EQ(ran.exit_code, 2) << command;
    EXPECT_TRUE(holds(ran, "no runs are stored")) << ran.text;
    EXPECT_NE(access(db.c_str(), F_OK), 0) << command;
  }
}

// What they measure, and never how it came out: that depends on the machine.
TEST(Cli, TheHarnessIsHeldAgainstItself) {
  const Ran twins = millrace(
      "bench rmsnorm --case 1x576_f32 --compare-twin 2 --seconds 0.02 --no-store --json "
      "2>/dev/null");
  const auto tries = nlohmann::json::parse(twins.text, nullptr, false);
  EXPECT_EQ(tries["tries"], 2) << twins.text;
  EXPECT_EQ(tries["called"].get<int>() + tries["same"].get<int>() + tries["ambiguous"].get<int>(),
            2);
  const Ran spin = millrace("bench --spin --seconds 0.1 --no-store --json 2>/dev/null");
  const auto read = nlohmann::json::parse(spin.text, nullptr, false);
  EXPECT_EQ(read["spin_us"], 10) << spin.text;
  EXPECT_GE(read["rounds"], 1);
  EXPECT_GT(read["edge_us"], 0);
  EXPECT_EQ(millrace("bench rmsnorm --spin 2>/dev/null").exit_code, 2);
}

// A folder and a database in it, which go away; `lab ARGS` uses it.
class Lab : public testing::Test {
 protected:
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("millrace_lab_" + std::to_string(getpid()));
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  Ran lab(const std::string& args, const std::string& db = "lab.db") {
    const size_t word_end = std::min(args.find(' '), args.size());
    return millrace("lab " + args.substr(0, word_end) + " --db " + (folder / db).string() +
                    args.substr(word_end) + " 2>&1");
  }
  nlohmann::json json_of(const std::string& args) {
    return nlohmann::json::parse(lab(args + " --json").text, nullptr, false);
  }
};

// Of one file run with f32 activations and f32 KV nothing can differ from the reference.
TEST_F(Lab, AccuracyIsMeasuredAgainstF32AndStored) {
  const std::string db = (folder / "lab.db").string(), f32 = (folder / "f32.gguf").string();
  const std::string args = " -t 2 --tokens 60 --window 40 --json --db " + db + " 2>/dev/null";
  const auto json = nlohmann::json::parse(millrace("accuracy tiny" + args).text, nullptr, false);
  ASSERT_EQ(json["rows"].size(), 6u) << json;
  for (const auto& row : json["rows"]) {
    EXPECT_EQ(row["tokens"], 58) << row;  // of two windows each first token was not expected
    EXPECT_EQ(row["activations"], "int8") << row;
    EXPECT_GT(row["mean_kl"], 0) << row;
    EXPECT_LT(row["mean_kl"], 0.05) << row;
    EXPECT_GT(row["same_top"], 0.8) << row;
  }
  const auto stored = json_of("show run:1");
  EXPECT_EQ(stored["kind"], "model") << stored;
  EXPECT_EQ(stored["results"].size(), 24u) << stored;
  const std::string uid = stored["uid"];
  EXPECT_EQ(json_of("show run:" + uid.substr(0, 10)), stored);
  EXPECT_EQ(lab("show run:0123456789ab").exit_code, 2);

  ASSERT_EQ(millrace("quantize tiny " + f32 + " f32 2>/dev/null").exit_code, 0);
  const auto same = nlohmann::json::parse(
      millrace("accuracy " + f32 + " --kv-type f32" + args).text, nullptr, false);
  ASSERT_EQ(same["rows"].size(), 2u) << same;
  for (const auto& row : same["rows"]) {
    EXPECT_EQ(row["mean_kl"], 0) << row;
    EXPECT_EQ(row["same_top"], 1) << row;
    EXPECT_EQ(row["perplexity"], row["reference_perplexity"]) << row;
  }
}

// The same numbers printed and stored, all samples and the twin's, and the witness's steps.
TEST_F(Lab, AModelIsBenchedVerifiedAndStored) {
  const Ran ran = millrace("bench tiny -t 2 -p 20 -n 6 -d 5 -r 2 --json --db " +
                           (folder / "lab.db").string() + " 2>/dev/null");
  const auto json = nlohmann::json::parse(ran.text, nullptr, false);
  ASSERT_EQ(ran.exit_code, 0) << ran.text;
  EXPECT_EQ(json["decode"][0]["verified_steps"], 6);
  EXPECT_EQ(json["witness_steps"], 7);
  EXPECT_EQ(json["witness"], "on 1 thread in batches of 24");
  const auto stored = json_of("show run:1");
  bool found = false;
  for (const auto& result : stored["results"])
    if (result["metric"] == "tokens_per_s" && result["problem"] == "decode 6 at 5") {
      found = true;
      EXPECT_EQ(result["value"], json["decode"][0]["tok_s_median"]) << result;
      EXPECT_EQ(result["n_samples"], 2) << result;
    }
  EXPECT_TRUE(found) << stored;
}

TEST_F(Lab, AccuracyOfNothingIsAnError) {
  const std::string text = (folder / "empty.txt").string();
  std::ofstream(text) << "";
  const Ran empty = millrace("accuracy tiny -t 1 --no-store --text " + text + " 2>&1");
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_TRUE(holds(empty, "empty.txt: the text has")) << empty.text;
  EXPECT_EQ(millrace("accuracy tiny --text /nowhere 2>/dev/null").exit_code, 2);
  const Ran no_room = millrace("accuracy tiny --no-store 2>&1", "TMPDIR=/nowhere");
  EXPECT_EQ(no_room.exit_code, 1);
  EXPECT_TRUE(holds(no_room, "TMPDIR")) << no_room.text;
}

TEST_F(Lab, PredictsMeasuresJudgesAndLearns) {
  const Ran said =
      lab("hypothesis 'a norm, twice' --op rmsnorm --case 1x576_f32 --compare avx2 "
          "generic --predict down --why 'a guess'");
  EXPECT_EQ(said.exit_code, 0) << said.text;
  EXPECT_TRUE(holds(said, "hyp:1: time falls")) << said.text;
  EXPECT_EQ(lab("verdict hyp:1").exit_code, 2);
  EXPECT_TRUE(holds(lab("verdict hyp:1"), "no run yet"));
  // A bench command that is wrong leaves nothing behind.
  EXPECT_EQ(lab("run hyp:1 -- bench nope").exit_code, 2);
  EXPECT_EQ(lab("run hyp:1 -- bench rmsnorm --no-store").exit_code, 2);
  EXPECT_EQ(lab("run hyp:1 -- bench rmsnorm --list").exit_code, 2);
  EXPECT_EQ(lab("run hyp:1 -- chat").exit_code, 2);
  EXPECT_EQ(lab("run hyp:9 -- bench rmsnorm").exit_code, 2);
  EXPECT_EQ(json_of("show hyp:1")["runs"].size(), 0u);
  const Ran ran =
      millrace("lab run hyp:1 --json --db " + (folder / "lab.db").string() +
               " -- bench rmsnorm --case 1x576_f32 --quick --seconds 0.02 --variant avx2 "
               "2>/dev/null");
  EXPECT_EQ(ran.exit_code, 0) << ran.text;
  EXPECT_EQ(nlohmann::json::parse(ran.text, nullptr, false).value("run", 0), 1) << ran.text;
  EXPECT_EQ(json_of("show run:1")["experiment"], "exp:1");
  // It did not measure what the prediction is about.
  EXPECT_TRUE(holds(lab("verdict 1"), "nothing was measured that the prediction is about"));
  EXPECT_EQ(lab("learn 1 'nothing yet'").exit_code, 2);
  for (const char* args : {"show hypotheses", "show learnings", "show runs", "show posts", "log",
                           "graph", "graph hyp:1", "show exp:1"}) {
    EXPECT_EQ(lab(args).exit_code, 0) << args;
    EXPECT_FALSE(json_of(args).is_discarded()) << args;
  }
  EXPECT_TRUE(holds(lab("graph --dot"), "digraph lab {"));
  EXPECT_EQ(json_of("log")[0]["type"], "hypothesis.added");
}

// What is printed to be pasted is one word a part, whatever somebody called it.
TEST_F(Lab, TheSuggestedCommandIsQuoted) {
  const Ran ran = lab(R"(hypothesis 'x' --op "a'; touch pwned; '" --case "it's *" --predict -30%)");
  EXPECT_TRUE(holds(ran, R"(bench 'a'\''; touch pwned; '\''' --case 'it'\''s *')")) << ran.text;
  EXPECT_TRUE(holds(lab("hypothesis 'x' --op rmsnorm --compare avx2 avx512 --predict -30%"),
                    "-- bench rmsnorm --compare avx2 avx512"));
}

// With samples made up, so that the verdict is known.
TEST_F(Lab, VerdictsAreComputedExportedAndImported) {
  EXPECT_EQ(lab("hypothesis 'half the time' --op rmsnorm --predict -30%").exit_code, 0);
  {
    auto notebook = millrace::lab::Notebook::open(folder / "lab.db");
    ASSERT_TRUE(notebook.ok());
    for (const std::string role : {"baseline", "candidate"}) {
      millrace::lab::Experiment experiment;
      experiment.hypothesis = 1;
      experiment.role = role;
      const auto id = notebook->add(experiment);
      ASSERT_TRUE(id.ok());
      millrace::lab::RunHead head{"cpu", "a machine", "{}", "abc", "{}", "bench"};
      head.experiment = id.value();
      const auto run = notebook->store().begin_run(head);
      ASSERT_TRUE(run.ok());
      auto metric =
          millrace::lab::metric_of({"op", "rmsnorm", "1x576", "avx2", "cold", 1}, "time", "us",
                                   "lower", std::vector<double>(20, role == "baseline" ? 10 : 5));
      metric.noise = 0;
      ASSERT_TRUE(notebook->store().add_metrics(run.value(), {metric}).ok());
      ASSERT_TRUE(notebook->store().end_run(run.value(), "done").ok());
    }
  }
  EXPECT_TRUE(holds(lab("verdict hyp:1"), "hyp:1 is supported by run:2 against run:1"));
  EXPECT_EQ(json_of("verdict hyp:1")["outcome"], "supported");
  EXPECT_EQ(json_of("learn hyp:1 'it halves'")["strength"]["name"], "one run");
  EXPECT_TRUE(holds(lab("show learn:1"), "stale: hardware was a machine"));
  EXPECT_TRUE(holds(lab("graph"), "learn:1 -derived_from-> hyp:1  (run:2)"));
  const std::string file = (folder / "out.jsonl").string();
  EXPECT_EQ(lab("export " + file).exit_code, 0);
  EXPECT_EQ(lab("import " + file, "other.db").exit_code, 0);
  EXPECT_TRUE(holds(lab("show run:2", "other.db"), "imported"));
  EXPECT_TRUE(holds(lab("show learn:1", "other.db"), "imported, not measured here"));
  EXPECT_TRUE(holds(lab("import " + file, "other.db"), "0 runs and 0 other records"));
  EXPECT_EQ(
      millrace("lab export --db " + (folder / "lab.db").string() + " | sed s/avx2/avx9/g > " + file)
          .exit_code,
      0);
  const Ran changed = lab("import " + file, "third.db");
  EXPECT_EQ(changed.exit_code, 1);
  EXPECT_TRUE(holds(changed, "digest does not match")) << changed.text;
  EXPECT_EQ(lab("import " + folder.string()).exit_code, 2);
  EXPECT_EQ(lab("import /nowhere").exit_code, 2);
}

TEST_F(Lab, HostileTextReachesNoTerminal) {
  const Ran said =
      lab("hypothesis \"$(printf '\\033[2J\\033]0;x\\007 <b> \\342\\200\\256')\" --predict down "
          "--op \"$(printf '\\033[31m')\"");
  EXPECT_EQ(said.exit_code, 0) << said.text;
  for (const char* args : {"show hypotheses", "show hyp:1", "log", "graph", "graph --dot",
                           "show hyp:1 --json", "export"}) {
    const Ran ran = lab(args);
    EXPECT_EQ(ran.exit_code, 0) << args;
    EXPECT_FALSE(holds(ran, "\033") || holds(ran, "\007")) << args;
  }
  EXPECT_FALSE(holds(lab("show hyp:1"), "\342\200\256"));
}

TEST_F(Lab, WrongArgumentsAreNamed) {
  const struct {
    const char *args, *says;
  } kWrong[] = {{"", "needs one of its commands"},
                {"bogus", "needs one of its commands"},
                {"hypothesis text", "--predict"},
                {"hypothesis text --predict sideways", "not a prediction"},
                {"hypothesis '' --predict down", "is empty"},
                {"hypothesis \"$(printf '\\377')\" --predict down", "not UTF-8"},
                {"hypothesis x --predict down --compare a b --baseline run:1", "excludes"},
                {"hypothesis x --predict down --baseline run:7", "no run 7"},
                {"hypothesis x --predict down --refines hyp:7", "no hyp:7"},
                {"show hyp:1", "no hyp:1"},
                {"show nonsense", "is not a record"},
                {"show run:99999999999999999999", "is not a record"},
                {"graph hyp:77", "no hyp:77"}};
  ASSERT_EQ(lab("import /dev/null").exit_code, 1);  // and makes the database
  for (const auto& [args, says] : kWrong) {
    const Ran ran = args[0] == 0 || std::string(args) == "bogus"
                        ? millrace("lab " + std::string(args) + " 2>&1")
                        : lab(args);
    EXPECT_EQ(ran.exit_code, 2) << args << ran.text;
    EXPECT_TRUE(holds(ran, says)) << args << ": " << ran.text;
  }
}

TEST(Cli, TheChainTakesNoOptionsOfTheKernels) {
  for (const char* other : {"rmsnorm", "--case x", "--device cpu", "--seconds 1", "--threads 2",
                            "--quick", "--list", "--write-profile x"}) {
    const Ran ran = millrace(std::string("bench --chain ") + other + " 2>&1");
    EXPECT_EQ(ran.exit_code, 2) << other << ": " << ran.text;
    EXPECT_TRUE(holds(ran, "--chain")) << ran.text;
  }
}

TEST(Cli, BenchRefusesADamagedStoreBeforeItMeasures) {
  const std::string db = testing::TempDir() + "millrace_junk_" + std::to_string(getpid()) + ".db";
  std::FILE* file = std::fopen(db.c_str(), "w");
  std::fputs("this is no database, and long enough to be looked at as one", file);
  std::fclose(file);
  const Ran ran = millrace("bench rmsnorm --quick --db " + db + " 2>&1");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_TRUE(holds(ran, "damaged"));
  std::remove(db.c_str());
}

TEST(Cli, TokenizesAndBack) {
  const std::string model = MILLRACE_CORPUS "/tokenizer_json/gguf_gpt2";
  EXPECT_EQ(millrace("tokenize " + model + " 'ab a' --ids").text, "5 2 4\n");
  EXPECT_EQ(millrace("tokenize " + model + " --no-bos --ids", "printf '<s>ab' |").text, "2\n");
  EXPECT_EQ(millrace("tokenize " + model + " '<s>ab' --special --no-bos --ids").text, "5 2\n");
  const auto json = nlohmann::json::parse(millrace("tokenize " + model + " ab --json").text);
  EXPECT_EQ(json["tokens"][1], nlohmann::json({{"id", 2}, {"piece", "ab"}}));
  EXPECT_EQ(millrace("detokenize " + model + " 5 2 4").text, "ab a");
  EXPECT_EQ(millrace("detokenize " + model + " --special", "echo '[5, 2]' |").text, "<s>ab");
}

TEST(Cli, TokenizeSaysWhatItCannotDo) {
  const std::string model = MILLRACE_CORPUS "/tokenizer_json/gguf_gpt2";
  const Ran beyond = millrace("detokenize " + model + " 11 2>&1");
  EXPECT_EQ(beyond.exit_code, 2);
  EXPECT_TRUE(holds(beyond, "no token 11"));
  EXPECT_EQ(millrace("detokenize " + model + " x 2>&1").exit_code, 2);
  EXPECT_EQ(millrace("tokenize " + model + " --file /nowhere 2>&1").exit_code, 2);
  EXPECT_EQ(millrace("tokenize /nowhere/x.gguf hi 2>&1").exit_code, 2);
}

// A directory of safetensors with a tokenizer: as GGUF it is the same to every command.
TEST(Cli, ADirectoryBecomesGguf) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("convert_" + std::to_string(getpid()));
  fs::copy(MILLRACE_FIXTURES "/models/qwen3_untied", folder);
  std::ofstream(folder / "chat_template.jinja") << "{{ messages[0].content }}";
  std::ofstream(folder / "tokenizer.json")
      << R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
             "added_tokens": [{"id": 3, "content": "<s>", "special": true}],
             "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}})";
  const std::string file = folder.string() + ".gguf";
  const Ran made = millrace("quantize " + folder.string() + " " + file + " f32 2>&1");
  EXPECT_EQ(made.exit_code, 0) << made.text;
  const std::string messages = R"(echo '[{"role": "user", "content": "ab"}]' |)";
  for (const char* args : {"tokenize MODEL '<s>abba' --special --json",
                           "logits MODEL --tokens 2,1,0 --json", "template MODEL - --tokens"}) {
    const auto of = [&](const std::string& model) {
      std::string line = args;
      return millrace(line.replace(line.find("MODEL"), 5, model), messages);
    };
    EXPECT_EQ(of(file).exit_code, 0) << args;
    EXPECT_EQ(of(file).text, of(folder.string()).text) << args;
  }
  fs::remove_all(folder);
  fs::remove(file);
}

TEST(Cli, ChatSaysWhichModelIsNotThere) {
  const Ran ran = millrace("chat /nowhere/x.gguf 2>&1", "echo hi |");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_TRUE(holds(ran, "/nowhere/x.gguf"));
}

TEST(Cli, AFullDiskIsAFailure) {
  const Ran ran = millrace("doctor 2>&1 >/dev/full");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_TRUE(holds(ran, "cannot write"));
}

class TempFolder {
 public:
  explicit TempFolder(const std::string& name)
      : path(testing::TempDir() + name + std::to_string(getpid())) {
    std::filesystem::create_directories(path);
  }
  ~TempFolder() { std::filesystem::remove_all(path); }
  const std::string path;
};

nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in, nullptr, false);
}

TEST(Cli, AnswersNameTheirNumerics) {
  const auto run = nlohmann::json::parse(
      millrace("run tiny -t 1 -p Once -n 1 --json 2>/dev/null").text, nullptr, false);
  ASSERT_TRUE(run.is_object());
  const std::string fingerprint = run["fingerprint"];
  EXPECT_EQ(fingerprint.size(), 32u);
  EXPECT_TRUE(holds(millrace("logits tiny -t 2 --tokens 5 2>&1 >/dev/null"), fingerprint.c_str()));
  const char* command = "logits tiny -t 1 --tokens 5 --top 1 --json ";
  EXPECT_TRUE(holds(millrace(command + std::string("2>&1 >/dev/null")), fingerprint.c_str()));
  const Ran json = millrace(command + std::string("2>/dev/null"));
  EXPECT_TRUE(nlohmann::json::parse(json.text, nullptr, false).is_array()) << json.text;
}

TEST(Cli, BenchTimesTheOpsOfAStep) {
  const Ran ran = millrace("bench tiny -t 2 --ops -n 3 -p 20 -d 5 --json 2>/dev/null");
  ASSERT_EQ(ran.exit_code, 0);
  const auto json = nlohmann::json::parse(ran.text, nullptr, false);
  ASSERT_TRUE(json.is_object()) << ran.text;
  EXPECT_EQ(json["fingerprint"].get<std::string>().size(), 32u);
  for (const char* what : {"decode", "prefill"}) {
    const auto& step = json[what][0];
    EXPECT_GT(step["step_us"], 0);
    EXPECT_LE(step["barriers"], step["calls"]);
    for (const char* table : {"ops", "shapes"}) {
      int n_calls = 0;
      double share = 0;
      for (const auto& row : step[table]) {
        n_calls += row["calls"].get<int>();
        share += row["share"].get<double>();
        EXPECT_GT(row["us"], 0) << row;
        if (row["op"] == "matmul") {
          EXPECT_GT(row["floor_share"], 0) << row;
        }
      }
      EXPECT_EQ(n_calls, step["calls"]) << table;
      EXPECT_NEAR(share, 1, 1e-6) << table;
    }
  }
  EXPECT_EQ(json["decode"][0]["context"], 5);
  EXPECT_EQ(json["prefill"][0]["tokens"], 20);
  const Ran text = millrace("bench tiny -t 1 --ops -n 2");
  EXPECT_TRUE(holds(text, "% of floor") && holds(text, "rmsnorm")) << text.text;
  EXPECT_FALSE(holds(text, "prefill")) << "only with -p";
  EXPECT_EQ(millrace("bench --ops 2>/dev/null").exit_code, 2);
  EXPECT_TRUE(holds(millrace("bench tiny --ops --device cuda 2>&1"), "not available on cuda"));
}

// Calls and waits of a lane follow each other inside the step that they belong to.
TEST(Cli, ATraceIsNested) {
  const TempFolder folder("millrace_trace_");
  const std::string path = folder.path + "/trace.json";
  ASSERT_EQ(millrace("bench tiny -t 2 --trace " + path + " 2>/dev/null").exit_code, 0);
  const auto json = read_json(path);
  ASSERT_TRUE(json.is_object());
  struct Step {
    double begin, end;
    int n_calls[2] = {0, 0};
    double busy_us[2] = {0, 0};
  };
  std::vector<Step> steps;
  double last_us[2] = {0, 0};
  constexpr double kRounding = 0.01;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "M") continue;
    ASSERT_EQ(event["ph"], "X");
    const double begin = event["ts"], dur = event["dur"];
    EXPECT_GE(dur, 0);
    const int tid = event["tid"];
    if (tid == 0) {
      steps.push_back({begin, begin + dur});
      continue;
    }
    ASSERT_LE(tid, 2);
    Step& step = steps.back();
    EXPECT_GE(begin + kRounding, std::max(step.begin, last_us[tid - 1])) << event;
    EXPECT_LE(begin + dur, step.end + kRounding) << event;
    last_us[tid - 1] = begin + dur;
    step.busy_us[tid - 1] += dur;
    if (event["cat"] == "wait") continue;
    ++step.n_calls[tid - 1];
    for (const char* key : {"variant", "class", "split", "rows"})
      EXPECT_TRUE(event["args"].contains(key)) << event;
  }
  ASSERT_EQ(steps.size(), 5u);
  for (const Step& step : steps) {
    EXPECT_GT(step.n_calls[0], 0);
    EXPECT_EQ(step.n_calls[0], steps[0].n_calls[0]);
    EXPECT_EQ(step.n_calls[1], steps[0].n_calls[0]);
    for (const double busy_us : step.busy_us) EXPECT_LE(busy_us, step.end - step.begin + kRounding);
  }
  EXPECT_EQ(millrace("bench tiny --trace /nowhere/x 2>/dev/null").exit_code, 1);
}

// The variant that a model's products run as, by --ops.
std::string matmul_variant(const std::string& before) {
  const Ran ran = millrace("bench tiny -t 1 --ops -n 1 --json 2>/dev/null", before);
  const auto json = nlohmann::json::parse(ran.text, nullptr, false);
  if (!json.is_object()) return "failed: " + ran.text;
  for (const auto& row : json["decode"][0]["shapes"])
    if (row["op"] == "matmul") return row["variant"];
  return "none";
}

TEST(Cli, AProfileIsReadWhereItFitsTheMachine) {
  const TempFolder folder("millrace_state_");
  const std::string own = "MILLRACE_PROFILE= XDG_STATE_HOME=" + folder.path;
  const std::string path = folder.path + "/millrace/profile.json";
  const Ran wrote = millrace(
      "bench rmsnorm --case 1x576_f32 --quick --seconds 0.02 --no-store --write-profile default "
      "2>&1 >/dev/null",
      own);
  EXPECT_TRUE(holds(wrote, path.c_str())) << wrote.text;
  auto profile = read_json(path);
  ASSERT_TRUE(profile.is_object());
  EXPECT_EQ(millrace("run tiny -t 1 -p Once -n 1 2>&1 >/dev/null", own).text, "");

  const std::string first = matmul_variant(own);
  const auto json = nlohmann::json::parse(
      millrace("bench tiny -t 1 --ops -n 1 --json 2>/dev/null").text, nullptr, false);
  profile["entries"] = nlohmann::json::array();
  for (const auto& row : json["decode"][0]["shapes"])
    if (row["op"] == "matmul")
      profile["entries"].push_back({{"op", "matmul"}, {"key", row["shape"]}, {"variant", "avx2"}});
  std::ofstream(path) << profile;
  EXPECT_EQ(matmul_variant(own), "avx2") << "the profile's, not " << first;
  EXPECT_EQ(matmul_variant(own + " MILLRACE_PROFILE=off"), first);
  EXPECT_EQ(matmul_variant("MILLRACE_PROFILE=" + path), "avx2");

  profile["machine"] = "another";
  std::ofstream(path) << profile;
  const Ran foreign = millrace("run tiny -t 1 -p Once -n 1 2>&1 >/dev/null", own);
  EXPECT_EQ(foreign.exit_code, 0);
  EXPECT_TRUE(holds(foreign, "ignoring the profile") && holds(foreign, path.c_str()))
      << foreign.text;
  EXPECT_EQ(matmul_variant(own), first);
}

TEST(Cli, ADamagedProfileIsAnErrorThatSaysHowToGoOn) {
  const TempFolder folder("millrace_damaged_");
  const std::string path = folder.path + "/p.json";
  const std::string run = "run tiny -t 1 -p Once -n 1 2>&1 >/dev/null";
  const Ran missing = millrace(run, "MILLRACE_PROFILE=" + path);
  EXPECT_TRUE(missing.exit_code != 0 && holds(missing, path.c_str())) << missing.text;
  std::ofstream(path) << "{\"format\": 3}";
  const Ran ran = millrace(run, "MILLRACE_PROFILE=" + path);
  EXPECT_NE(ran.exit_code, 0);
  EXPECT_TRUE(holds(ran, path.c_str()) && holds(ran, "MILLRACE_PROFILE=off")) << ran.text;
}

TEST(Cli, LogitsThatAreNotFiniteAreAnError) {
  const TempFolder folder("millrace_nan_");
  const std::string path = folder.path + "/nan.gguf";
  ASSERT_EQ(millrace("make-model tiny-llama " + path + " --type f32 >/dev/null 2>&1").exit_code, 0);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-4096, std::ios::end);  // of the last tensor
  file << std::string(4096, '\xff');
  file.close();
  std::ofstream(folder.path + "/text") << "some text to expect";
  const Ran logits = millrace("logits " + path + " -t 1 --tokens 1,2,3 2>&1");
  EXPECT_EQ(logits.exit_code, 1);
  EXPECT_TRUE(holds(logits, "not finite at position 2")) << logits.text;
  const Ran all = millrace("logits " + path + " -t 1 --tokens 1,2,3 --all --json 2>&1");
  EXPECT_TRUE(all.exit_code == 1 && holds(all, "not finite at position 0")) << all.text;
  const Ran perplexity = millrace("perplexity " + path + " " + folder.path + "/text -t 1 2>&1");
  EXPECT_EQ(perplexity.exit_code, 1);
  EXPECT_TRUE(holds(perplexity, "not finite at position 0")) << perplexity.text;
}

}  // namespace
