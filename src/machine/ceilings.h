// What this machine can do at most, measured: read bandwidth and multiply-add rates, with one lane
// and with all. Every "% of floor" divides by these, so a weak ceiling makes every percentage a
// lie: each is the best of many short rounds of several forms, and says when the machine was not
// quiet. Device ceilings are measured by the device code and join in their own fields.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "machine/loops.h"
#include "machine/machine.h"
#include "machine/noise.h"
#include "machine/team.h"

namespace millrace {

// Multiply-adds in billions a second. Reads are in GB/s, 10^9 bytes.
struct Rate {
  MacType type = MacType::i8;
  Isa isa = Isa::generic;
  double gmacs_one = 0;
  double gmacs_all = 0;
};

struct Ceilings {
  int n_lanes = 1;  // what "all" means
  double read_gbps_one = 0;
  double read_gbps_all = 0;
  std::string read_loop;  // the form that reached it with all lanes
  std::vector<Rate> rates;
  double barrier_ns = 0;  // all lanes, hot; 0 with one lane
  bool quiet = true;
  std::string noise;  // "not quiet: ..." and the reasons; empty when quiet

  // Null when that pair was not measured here: the ISA is absent.
  const Rate* rate(MacType type, Isa isa) const;
  // The ISA that does most of `type` with all lanes; null when there is none.
  const Rate* best_rate(MacType type) const;
};

// quick: about half a second, good to a few percent; full: about two seconds.
enum class Effort { quick, full };

Ceilings measure_ceilings(const Machine& machine, Effort effort);

// The bare loops again, a few short rounds beside something else that is timed: where
// other machines share the host, what was reached at that moment says more than the best ever seen.
class CeilingProbe {
 public:
  CeilingProbe(const Machine& machine, Team& team);
  ~CeilingProbe();
  // With all of the team's lanes, a few milliseconds; of the multiply-adds those of `types` alone.
  // Rates of one lane and the barrier stay 0.
  Ceilings now(std::span<const MacType> types);

 private:
  struct Loops;
  Team& team_;
  std::unique_ptr<Loops> loops_;
};

}  // namespace millrace
