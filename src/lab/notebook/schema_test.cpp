#include "lab/notebook/schema.h"

#include "lab/notebook/fixture_test.h"

namespace millrace::lab {
namespace {

class SchemaTest : public NotebookFixture {};

// The tables as schema 1 had them, word for word.
constexpr const char* kSchema1 = R"sql(
CREATE TABLE runs(
  id INTEGER PRIMARY KEY, started TEXT NOT NULL, ended TEXT, state TEXT NOT NULL,
  device TEXT NOT NULL, machine TEXT NOT NULL, machine_json TEXT NOT NULL,
  build_commit TEXT NOT NULL, build_json TEXT NOT NULL, command TEXT NOT NULL);
CREATE TABLE ceilings(
  run_id INTEGER NOT NULL REFERENCES runs(id), at TEXT NOT NULL, label TEXT NOT NULL,
  json TEXT NOT NULL);
CREATE TABLE results(
  id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES runs(id),
  op TEXT NOT NULL, problem TEXT NOT NULL, key TEXT NOT NULL, variant TEXT NOT NULL,
  numerics TEXT NOT NULL, layout TEXT NOT NULL, isa TEXT NOT NULL, mode TEXT NOT NULL,
  n_lanes INTEGER NOT NULL, us REAL NOT NULL, us_lo REAL, us_hi REAL, bytes REAL, macs REAL,
  gbps REAL, gflops REAL, floor_us REAL, floor_percent REAL, isa_percent REAL, bound TEXT,
  noise REAL, ring_entries INTEGER, ring_bytes REAL, verified_whole INTEGER,
  verified_sampled INTEGER);
CREATE INDEX results_by_run ON results(run_id);
CREATE TABLE samples(
  result_id INTEGER NOT NULL REFERENCES results(id), twin INTEGER NOT NULL, round INTEGER NOT NULL,
  us REAL NOT NULL, PRIMARY KEY(result_id, twin, round)) WITHOUT ROWID;
PRAGMA application_id = 1298754668;
PRAGMA user_version = 1;
INSERT INTO runs VALUES(3, '2026-01-01T00:00:00Z', '2026-01-01T00:01:00Z', 'done', 'cpu', 'm', '{"a":1}',
  'abc', '{"compiler":"g++ 12"}', 'millrace bench rmsnorm');
INSERT INTO runs VALUES(5, '2026-01-02T00:00:00Z', NULL, 'running', 'cpu', 'm', '{}', 'abc', '{}', 'millrace bench');
INSERT INTO ceilings VALUES(3, '2026-01-01T00:00:10Z', 'before', '{"read_gbps":20}');
INSERT INTO results VALUES(7, 3, 'rmsnorm', '1x576', 'key', 'avx2', 'num', 'lay', 'avx2', 'cold', 2, 1.5, 1.25, NULL,
  4612, 10, 3, 4, 0.5, 33, 0, 'bytes', NULL, 9, 1e6, 2, 3);
INSERT INTO results VALUES(8, 3, 'rmsnorm', '1x576', 'key', 'avx512', 'num', 'lay', 'avx512', 'cold', 2, 1.0, 0.9, 1.1,
  4612, 10, 3, 4, 0.5, 50, 0, 'bytes', 0.01, 9, 1e6, 2, 3);
INSERT INTO results VALUES(9, 5, 'topk', '8', 'key', 'avx2', 'num', '', 'avx2', 'warm', 1, 2, NULL, NULL,
  1, 1, 1, 1, 1, 1, 1, '', NULL, 1, 1, 1, 1);
INSERT INTO samples VALUES(7, 0, 0, 1.5), (7, 0, 1, 1.75), (7, 1, 0, 1.625), (8, 0, 0, 1.0), (9, 0, 0, 2.0);
)sql";

TEST_F(SchemaTest, ADatabaseOfSchema1LosesNothing) {
  ASSERT_EQ(sql(kSchema1), "");
  for (int time = 0; time < 2; ++time) {  // migrated, and opened again
    Notebook notebook = open();
    Store& store = notebook.store();
    const auto runs = store.runs(10).value();
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].id, 5);
    EXPECT_EQ(runs[0].state, "interrupted");  // its process cannot be alive
    EXPECT_EQ(runs[1].state, "done");
    EXPECT_EQ(runs[1].command, "millrace bench rmsnorm");
    EXPECT_EQ(store.problem_of(3).value(), "");
    EXPECT_NE(store.problem_of(5).value(), "");
    const auto rows = store.rows(3).value();
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].samples_us, (std::vector{1.5, 1.75}));
    EXPECT_EQ(rows[0].twin_us, std::vector{1.625});
    EXPECT_EQ(rows[0].us.lo, 1.25);
    EXPECT_TRUE(std::isinf(rows[0].us.hi) && std::isinf(rows[0].noise));
    EXPECT_EQ(rows[0].bytes, 4612);
    EXPECT_EQ(rows[0].mount.checked.n_sampled, 3u);
    EXPECT_EQ(rows[1].numerics, "num");
    EXPECT_EQ(store.rows(5)->size(), 1u);
    const auto record = store.record(3).value();
    EXPECT_EQ(record.machine_json, "{\"a\":1}");
    ASSERT_EQ(record.ceilings.size(), 1u);
    EXPECT_EQ(record.ceilings[0].json, "{\"read_gbps\":20}");
  }
}

// As a file of schema 2: without the columns that came later.
TEST_F(SchemaTest, ADatabaseOfSchema2KeepsItsRunsAndTheirDigests) {
  int64_t run = 0;
  {
    Notebook notebook = open();
    run = add_run(notebook, {metric("avx2", 5)});
  }
  ASSERT_EQ(sql("ALTER TABLE kernel_facts DROP COLUMN verified_rows;"
                "ALTER TABLE kernel_facts DROP COLUMN witness; PRAGMA user_version = 2"),
            "");
  for (int time = 0; time < 2; ++time) {
    Notebook notebook = open();
    EXPECT_EQ(notebook.store().problem_of(run).value(), "");
  }
}

TEST_F(SchemaTest, RowsOfSchema1ThatBelongToNothingStopTheMigration) {
  ASSERT_EQ(sql(kSchema1), "");
  ASSERT_EQ(
      sql("INSERT INTO samples VALUES(7, 0, 2, 1.0); UPDATE results SET run_id = 99 WHERE id = 7"),
      "");
  const auto notebook = Notebook::open(file);
  EXPECT_EQ(notebook.status().code(), Code::corrupt);
  EXPECT_EQ(sql("SELECT us FROM samples; INSERT INTO samples VALUES(8, 0, 9, 1.0)"),
            "");  // as it was
}

TEST_F(SchemaTest, ADatabaseWithoutAKnownSchemaIsRefused) {
  ASSERT_EQ(sql("CREATE TABLE runs(x); PRAGMA application_id = 1298754668"), "");
  EXPECT_EQ(Notebook::open(file).status().code(), Code::corrupt);
  // The right number, and not the tables: a clear failure, and no change.
  ASSERT_EQ(sql("PRAGMA user_version = 1"), "");
  EXPECT_FALSE(Notebook::open(file).ok());
  EXPECT_EQ(sql("INSERT INTO runs VALUES(1)"), "");
}

TEST_F(SchemaTest, WhatIsWrittenStays) {
  {
    Notebook notebook = open();
    const int64_t h = notebook.add(hypothesis("-10%")).value();
    add_run(notebook, {metric("avx2", 10), metric("avx512", 8)}, h);
    ASSERT_TRUE(notebook.give_verdict(h).ok());
    ASSERT_TRUE(notebook.learn(h, "it is").ok());
  }
  for (const char* change :
       {"UPDATE events SET text = 'x'",
        "DELETE FROM events",
        "UPDATE runs SET command = 'x'",
        "UPDATE runs SET digest = NULL",
        "DELETE FROM runs",
        "UPDATE metrics SET value = 1",
        "DELETE FROM metrics",
        "UPDATE samples SET value = 1",
        "DELETE FROM samples",
        "INSERT INTO samples VALUES(1, 0, 999, 1)",
        "UPDATE hypotheses SET size = -0.01",
        "DELETE FROM hypotheses",
        "UPDATE verdicts SET outcome = 'refuted'",
        "DELETE FROM verdicts",
        "UPDATE learnings SET text = 'x'",
        "UPDATE edges SET type = 'refutes'",
        "UPDATE subjects SET variant = 'x'",
        "DELETE FROM subjects",
        "UPDATE ceilings SET json = '[]'",
        "DELETE FROM ceilings",
        "REPLACE INTO run_details VALUES(1, '', '')",
        "REPLACE INTO kernel_facts SELECT * FROM kernel_facts",
        "REPLACE INTO metrics SELECT id, 99, subject_id, name, unit, better, value, lo, hi, noise "
        "FROM metrics",
        "INSERT INTO edges(created, src_kind, src_id, dst_kind, dst_id, type) "
        "VALUES('', 'x', 1, 'hyp', 1, 'refines')",
        "UPDATE kernel_facts SET floor_percent = 100",
        "UPDATE run_details SET machine_json = ''",
        "REPLACE INTO samples VALUES(1, 0, 0, 1)",
        "REPLACE INTO events VALUES(1, 'u', 'at', 'me', 'x', 'run', 1, 'x')",
        "REPLACE INTO verdicts SELECT id, uid, created, hypothesis_id, run_id, baseline_run_id, "
        "'refuted', method, json, origin FROM verdicts",
        "INSERT INTO metrics SELECT NULL, run_id, subject_id, name, unit, better, value, lo, hi, "
        "noise FROM metrics",
        "INSERT INTO edges(created, src_kind, src_id, dst_kind, dst_id, type) "
        "VALUES('', 'run', 1, 'hyp', 1, 'supports')"})
    EXPECT_NE(sql(change), "") << change;
  Notebook notebook = open();
  EXPECT_EQ(notebook.store().problem_of(1).value(), "");
}

TEST_F(SchemaTest, SamplesOfNothingAreAnError) {
  Notebook notebook = open();
  add_run(notebook, {metric("avx2", 10)});
  ASSERT_EQ(sql("DROP TRIGGER subjects_remain; DELETE FROM subjects"), "");
  EXPECT_EQ(notebook.store().metrics(1).status().code(), Code::corrupt);
}

}  // namespace
}  // namespace millrace::lab
