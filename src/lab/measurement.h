// A bench run from end to end: ceilings, every planned case, ceilings again. It owns the order of
// things and what a run amounts to; printing and storing are the listener's.
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "lab/bench.h"
#include "lab/row.h"

namespace millrace::lab {

// Ceilings before and after a run that differ by more than this: something else was running.
inline constexpr double kQuietSpread = 0.10;

struct Measurement {
  std::vector<CaseRun> cases;
  std::vector<Row> rows;              // against the final ceilings
  std::vector<std::string> failures;  // cases that failed verification or could not be mounted
  Roof before, after, roof;           // roof: the best of all measurements
  bool raised = false;                // a row beat its floor, so the ceilings were measured again
  bool interrupted = false;
  bool device_lost = false;  // by the last case of `failures`; the rest was not measured

  bool complete() const { return !interrupted && !device_lost; }
  double spread() const { return spread_of(before, after); }
  // Empty when it was; else why the percentages are not to be trusted.
  std::string why_not_quiet() const;
  std::string why_slowed() const;  // of a GPU
};

struct Listener {
  virtual ~Listener() = default;
  virtual void on_ceilings(std::string_view when, const Roof& roof) = 0;
  virtual void on_case(const CaseRun& run, const std::vector<Row>& rows) = 0;
  virtual void on_failure(const std::string& message) = 0;
};

Result<Measurement> measure_all(Target& target, const std::vector<PlanItem>& plan,
                                const BenchOptions& options, const std::atomic<bool>& stop,
                                Progress& progress, Listener& listener);

}  // namespace millrace::lab
