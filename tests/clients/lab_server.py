"""A running `millrace lab serve` and databases for it: one filled by the commands themselves, one with many made-up
runs, one with hostile text."""

import os
import pathlib
import re
import sqlite3
import subprocess
import threading

PATIENCE_S = 120  # others may use this machine
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> \"'& \u202etxt.exe"

GPU = """count 1
0.use 97
0.memory_use 60
0.memory 150754820096
0.used 96636764160
0.sm_mhz 1980
0.max_sm_mhz 1980
0.memory_mhz 3201
0.max_memory_mhz 3201
0.reasons 0
0.temperature 61
0.slowdown 92
0.memory_temperature 70
0.power_mw 512300
0.limit_mw 700000
0.ecc_corrected 3
0.ecc_uncorrected 0
0.rows_corrected 1
0.rows_uncorrected 0
0.remap_pending 0
0.remap_failed 0
0.gen 5
0.max_gen 5
0.width 16
0.max_width 16
0.replays 0
0.processes 1
0.recovery 0
"""


def run(millrace, *args, expect=0):
    done = subprocess.run([millrace, *args], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout


def fill_by_commands(millrace, db):
    """From an empty file to a learning, as a user does it. Returns the outcome of the verdict."""
    run(millrace, "lab", "hypothesis", "Vectors find the top k faster than the standard library", "--op", "topk", "--case",
        "64x128_k8", "--compare", "std_nth_element", "avx2", "--predict", "-10%", "--why", "eight at once", "--db", db)
    run(millrace, "lab", "run", "hyp:1", "--db", db, "--", "bench", "topk", "--case", "64x128_k8", "--compare",
        "std_nth_element", "avx2", "--seconds", "0.2", "-t", "1")
    said = run(millrace, "lab", "verdict", "hyp:1", "--db", db)
    run(millrace, "lab", "learn", "hyp:1", "A partial sort by vectors pays", "--db", db)
    run(millrace, "bench", "tiny", "--ops", "-t", "1", "--db", db)
    return re.search(r"hyp:1 is (\w+)", said)[1]


def make_empty(millrace, db):
    """The tables, with one hypothesis that nothing follows from."""
    run(millrace, "lab", "hypothesis", HOSTILE, "--op", "rmsnorm", "--compare", "avx2", "avx512", "--predict", "-10%",
        "--why", HOSTILE, "--db", db)


def fill_with(db, n_runs):
    """So many runs of 20 ops, a hypothesis with verdict and learning for every tenth."""
    with sqlite3.connect(db) as file:
        file.executescript(f"""
PRAGMA synchronous = OFF;
CREATE TEMP TABLE n(i INTEGER PRIMARY KEY);
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {n_runs}) INSERT INTO n SELECT i FROM c;
INSERT INTO hypotheses(created, text, rationale, metric, direction, size, kind, name, problem, mode, variant_a, variant_b)
  SELECT '2026-01-01T00:00:00Z', 'hypothesis ' || i, '', 'time', 'down', -0.1, '', 'op' || (i % 20), '', '', 'avx2',
    'avx512' FROM n WHERE i <= {n_runs} / 10;
INSERT INTO experiments(created, hypothesis_id, role, command)
  SELECT created, id, 'candidate', 'bench' FROM hypotheses WHERE id > 1;
INSERT INTO runs(id, kind, started, ended, state, device, machine, build_commit, command)
  SELECT i, 'op', strftime('%Y-%m-%dT%H:%M:%SZ', 1767225600 + 900 * i, 'unixepoch'), '2026-01-01T00:00:00Z', 'done', 'cpu',
    'm', 'abcdef1234', 'millrace bench op' || i % 20 FROM n;
INSERT INTO run_details SELECT i, '{{}}', '{{}}' FROM n;
INSERT INTO run_names SELECT 'op' || (i % 20), i FROM n;
INSERT INTO ceilings SELECT i, '2026-01-01T00:00:00Z', 'before',
  '{{"read_gb_per_s": 24.5, "multiply_add": [{{"isa": "avx512_vnni", "type": "i8", "gmac_per_s": 310}},
    {{"isa": "avx2", "type": "f32", "gmac_per_s": 60}}]}}' FROM n;
INSERT INTO subjects(id, kind, name, problem, variant, mode, n_lanes)
  SELECT 20 * (n.i - 1) + k.i, 'op', 'op' || (k.i - 1), CASE (n.i - 1) / 2 WHEN 0 THEN '1x576' ELSE '512x576' END,
    CASE n.i % 2 WHEN 0 THEN 'avx512' ELSE 'avx2' END, 'cold', 2 FROM n, n k WHERE n.i <= 4 AND k.i <= 20;
INSERT INTO metrics(id, run_id, subject_id, name, unit, better, value, lo, hi, noise)
  SELECT 4 * r.i + s.i, r.i, 20 * (s.i - 1) + r.i % 20 + 1, 'time', 'us', 'lower', r.base * s.f, r.base * s.f * 0.98,
    r.base * s.f * 1.02, 0.01
  FROM (SELECT i, 10 + (i * 7919 % 100) * 0.02 AS base FROM n) r,
    (SELECT i, CASE (i - 1) / 2 WHEN 0 THEN 1.0 ELSE 400.0 END * CASE i % 2 WHEN 0 THEN 0.8 ELSE 1 END AS f FROM n
     WHERE i <= 4) s;
INSERT INTO kernel_facts SELECT id, 'key', 'n', 'l', 'avx2', 700 * value, 3000 * value, 0.7, 6, 4, 40, 0,
  'bytes', 1, 1, 1, 1, 1, 'plain' FROM metrics;
INSERT INTO samples SELECT m.id, 0, n.i, m.value * (1 + 0.001 * ((m.id + n.i * 7) % 19)) FROM metrics m, n WHERE n.i <= 5;
UPDATE runs SET digest = 'made up';
INSERT INTO verdicts(created, hypothesis_id, run_id, outcome, method, json)
  SELECT created, id, 10 * (id - 1), CASE id % 3 WHEN 0 THEN 'refuted' WHEN 1 THEN 'supported' ELSE 'undecided' END,
    'sign-test-1', '{{"rows": []}}' FROM hypotheses WHERE id > 1;
INSERT INTO edges(created, src_kind, src_id, dst_kind, dst_id, type, run_id)
  SELECT created, 'verdict', id, 'hyp', hypothesis_id, 'supports', run_id FROM verdicts;
INSERT INTO events(at, actor, type, ref_kind, ref_id, text)
  SELECT '2026-01-01T00:00:00Z', 'bench', 'run.ended', 'run', i, 'done' FROM n;
""")


class LabServer:
    """`millrace lab serve` on a free port, with a GPU that is made up where `gpu` has its values."""

    def __init__(self, millrace, db, gpu=None, keys=None):
        environment = {**os.environ, "XDG_DATA_HOME": str(pathlib.Path(db).parent)}
        if gpu is not None:
            self.gpu = pathlib.Path(db).parent / "gpu"
            self.gpu.write_text(gpu)
            folder = pathlib.Path(millrace).parents[1] / "fake_nvml"
            environment |= {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML": str(self.gpu)}
        if keys is not None:
            environment["MILLRACE_API_KEYS"] = keys
        self.process = subprocess.Popen([millrace, "lab", "serve", "--db", db, "--port", "0"], env=environment,
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        found = re.search(r"at (http://127\.0\.0\.1:\d+)/lab/", line)
        assert found, line + self.process.stderr.read()
        self.url = found[1]
        self.said = []
        threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True).start()

    def close(self):
        """Its exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE_S)
