// Verifying a ring before and while it is timed. The rule:
//  - the first variant of each numerics class runs over the whole ring. Rows of it are compared
//    with the reference within the case's tolerance, and bit for bit with the class's witness
//    (lab/witness.h) where it has one: every entry and row, or where that is too much work, rows
//    spread over the first entry and a row of others. Which ones follows from the shape alone,
//    never from the clock;
//  - contents that repeat an earlier one must give its bits;
//  - every other variant of the class must give the same bits on every entry;
//  - the hash of each content's output is kept, and every timed call must give it again, at
//    whichever address the content lies by then.
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
  size_t n_rows = 0;     // rows compared, of all entries; calls where the op has no rows
};

class RingCheck {
 public:
  RingCheck(Ring& ring, Team& team) : ring_(ring), team_(team) {}

  // Verifies what `pass` (one call of the variant on every entry, whose outputs were reset) leaves
  // in the ring; what it returns is its time in nanoseconds.
  Result<int64_t> verify(const Variant& variant, const std::function<Result<int64_t>()>& pass);
  // After a timed run: entries [begin, end) hold the verified bits of their contents.
  Status check(const Variant& variant, size_t begin, size_t end);

  const Checked& checked() const { return checked_; }

 private:
  using Hashes = std::vector<uint64_t>;
  struct Unit {
    size_t entry;
    int64_t row;  // -1: all
  };

  Hashes hash_entries(size_t begin, size_t end);
  Status same_bits(const Variant& variant, const Hashes& got, size_t begin);
  Status check_repeats(const Variant& variant, const Hashes& hashes);
  std::vector<Unit> plan();
  Status check_units(const Variant& variant, const std::vector<Unit>& units);

  Ring& ring_;
  Team& team_;
  std::map<std::string_view, Hashes> verified_;  // by numerics class, [content]
  Checked checked_;
};

}  // namespace millrace::lab
