// Verifying a ring before and while it is timed. The rule:
//  - the first variant of each numerics class runs over the whole ring and is compared with the
//    reference within the case's tolerance: every entry and row when that fits the time given, else
//    evenly spread rows of the first entry and one row of as many entries as fit;
//  - entries that repeat an earlier entry's content must give its bits;
//  - every other variant of the class must give the same bits on every entry;
//  - the hash of each entry's output is kept, and every timed call must give it again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lab/ring.h"

namespace millrace::lab {

struct Checked {
  size_t n_entries = 0;
  size_t n_whole = 0;    // entries compared with the reference in full
  size_t n_sampled = 0;  // entries of which some rows were
};

class RingCheck {
 public:
  // seconds: about how long the reference may take for each class.
  RingCheck(Ring& ring, Team& team, double seconds) : ring_(ring), team_(team), seconds_(seconds) {}

  // Verifies what `pass` (one call of the variant on every entry, whose outputs were reset) leaves
  // in the ring; what it returns is its time in nanoseconds.
  Result<int64_t> verify(const Variant& variant, const std::function<Result<int64_t>()>& pass);
  // After a timed run: entries [begin, end) hold the verified bits of the variant's class.
  Status check(const Variant& variant, size_t begin, size_t end);

  const Checked& checked() const { return checked_; }

 private:
  using Hashes = std::vector<uint64_t>;
  struct Unit {
    size_t entry;
    int64_t row;  // -1: all
  };

  Hashes hash_entries(size_t begin, size_t end);
  Status same_bits(const Variant& variant, const Hashes& got, size_t begin, const Hashes& want);
  Status check_repeats(const Variant& variant, const Hashes& hashes);
  std::vector<Unit> plan(double unit_seconds, bool by_row);
  Status check_units(const std::vector<Unit>& units);
  Status check_against_reference();

  Ring& ring_;
  Team& team_;
  const double seconds_;
  std::map<std::string_view, Hashes> verified_;  // by numerics class
  Checked checked_;
};

}  // namespace millrace::lab
