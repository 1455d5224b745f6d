// A ring of instances of one case, for timing: so many that going round it reads several times the
// last-level cache, and every call's data comes from memory. Memory is plain (huge pages, no
// guards). The first contents are filled by the case, each from a seed of its own; the others
// repeat those inputs, their weight rotated by whole blocks, so that every weight is distinct, made
// of valid blocks, and cheap to make. Entries are places in memory; which content lies in which
// changes between samples (exchange), so that an address tells a kernel nothing about what it
// holds.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/case.h"
#include "machine/team.h"
#include "memory/host.h"

namespace millrace::lab {

class Ring {
 public:
  // A ring of one entry, its weight packed for every layout the variants want.
  static Result<Ring> make(const Op& op, const Case& problem,
                           std::span<const Variant* const> variants, uint64_t seed);

  // How many entries it takes to read `cold_bytes` going round, as far as `memory_bytes` reach; two
  // at least.
  size_t entries_for(size_t cold_bytes, size_t memory_bytes) const;
  // Makes it n entries long. Work is spread over the team; nothing that pointed into the ring is
  // valid after.
  Status grow(size_t n_entries, Team& team);

  const Op& op() const { return *op_; }
  const Case& problem() const { return case_; }
  size_t n_entries() const { return n_entries_; }
  // What one call must read, and what going round reads.
  size_t entry_bytes() const { return entry_bytes_; }
  size_t cold_bytes() const { return entry_bytes_ * n_entries_; }

  // Pointers of an entry's ports; of the weight, in `layout`.
  std::vector<void*> ports(size_t entry, std::string_view layout) const;
  ArgsBox args(size_t entry, const Variant& variant) const;
  size_t weight_bytes(std::string_view layout) const;  // 0 when there is none
  bool overwrites_inputs() const;                      // a call cannot be repeated without a reset
  // The bytes of a port of an entry that is not the weight.
  std::byte* port(size_t entry, size_t i) const { return slabs_[i].at(entry); }

  // The number of the content that lies in an entry; at first its own.
  size_t content_of(size_t entry) const { return content_[entry]; }
  // The first content that is the same as this one: itself where weights are rotated.
  size_t original_of(size_t content) const;
  // An entry's filled port as the case made it: an in-place port's before any run, the weight's
  // plain rows. Aligned to 64 bytes, but for a rotated weight, which starts at one of its blocks.
  const std::byte* original(size_t entry, size_t port) const;

  // Poison into the outputs, another pattern every time; original content into in-place ports.
  // Cold: past the caches.
  void reset(size_t begin, size_t end, bool cold, Team& team);
  uint64_t output_hash(size_t entry) const;

  // An entry with other content than this one, for the two to be exchanged; which one is random.
  // The entry itself where all hold the same.
  size_t partner_of(size_t entry, Rng& rng) const;
  // Each gets the inputs and the weight of the other, past the caches. Outputs stay.
  void exchange(size_t a, size_t b);
  // The same for somebody whose copy of the ring is elsewhere: the bytes here stay.
  void relabel(size_t a, size_t b) { std::swap(content_[a], content_[b]); }

 private:
  // One port of every entry, side by side.
  struct Slab {
    HostBuffer memory;
    size_t stride = 0;
    std::byte* at(size_t i) const { return memory.data() + i * stride; }
  };
  static Result<Slab> make_slab(size_t bytes, size_t n);

  Status add_base();
  Status allocate(size_t n_entries);
  void copy_inputs(size_t entry);
  void pack_weight(size_t entry);
  void reset_entry(size_t entry, bool cold);
  size_t n_bases_for(size_t n_entries) const;

  const Op* op_ = nullptr;
  Case case_;
  uint64_t seed_ = 0, n_resets_ = 0;
  size_t n_entries_ = 0;
  size_t entry_bytes_ = 0, memory_bytes_ = 0, fill_bytes_ = 0;  // of one entry
  int weight_ = -1;                                             // its port, or -1
  std::vector<std::vector<HostBuffer>> bases_;  // [base][port], as the case filled them; the weight
                                                // twice in a row, so that a rotation is a place
  std::vector<size_t> content_;                 // [entry]
  std::vector<Slab> slabs_;                     // [port]; none for the weight
  std::map<std::string, Slab, std::less<>> weights_;  // by layout
};

}  // namespace millrace::lab
