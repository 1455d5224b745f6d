// Moves contexts between the engine's memory and the disk, on the engine's thread, which it never
// holds up: pages are copied to the disk's slots soon after they were computed, and records that a
// prompt needs are read by the disk's thread while other requests are computed. What was read goes
// into the prefix tree and is held there until the prompt has taken it.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/disk/tier.h"
#include "engine/prefix_tree.h"
#include "exec/device.h"

namespace millrace {

struct KvTierOptions {
  double patience_s = 5;      // without a page after which a restore is given up
  double rest_s = 30;         // that the disk is not read then
  double ends_wait_s = 0.25;  // before the end of a context is written: it may soon be longer
};

class KvTier {
 public:
  // All but the disk outlive it, and the tree is empty.
  KvTier(std::unique_ptr<disk::Tier> disk, const disk::Root& root, PrefixTree& tree,
         std::vector<KvPages>& pools, Device& device, const KvTierOptions& options);
  ~KvTier();

  // Often, and at least a few times a second while is_busy().
  void pump();
  bool is_busy() const;
  // Writes all that waits, for so long at most; false: there is more.
  bool flush(double seconds);

  // Begins to read what the disk has of these tokens and memory lacks; 0: that is nothing. `again`:
  // after another for the same prompt. `use`: for whom.
  using Id = uint64_t;
  Id restore(std::string_view salt, std::span<const int32_t> tokens, bool again = false,
             const Use& use = {});
  // Over, with all of it or with less; the pages are held until forget().
  bool is_over(Id id) const;
  void forget(Id id);
  int64_t n_to_take(Id id, size_t group) const;  // pages that it will still take
  bool is_restoring() const;                     // one that is not over
  // Until something was read, but not for longer than this.
  void wait(double seconds);

  disk::Tier& disk() { return *disk_; }
  struct Counts {
    int64_t n_restores = 0, n_failed = 0;  // of them that did not get all they wanted
    int64_t n_tokens = 0;                  // that were put into the tree
    int64_t n_regret = 0;  // tokens that were given up, then wanted, and not on disk
    double seconds = 0;    // all restores together
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Plan;
  struct Restore;

  Plan plan(std::string_view salt, std::span<const int32_t> tokens, const Use& use);
  void count_regret(const Plan& plan, std::string_view salt, std::span<const int32_t> tokens);
  int64_t best_end(const Plan& plan) const;
  void hold(const Plan& plan, int64_t n, Restore& restore);
  int write_behind();
  // Refused: no slot is free, writing is off, or the day's budget is spent.
  enum class Handed : unsigned char { was_there, taken, refused };
  Handed hand_over(const PrefixTree::Unsaved& unsaved);
  void fill(disk::Tier::WriteSlot& slot, const PrefixTree::Unsaved& unsaved, uint32_t groups);
  void collect();
  void ask(Restore& restore);
  void put(Restore& restore);
  bool put_page(Restore& restore, size_t page);
  void end(Restore& restore, bool is_whole);
  void release(Restore& restore);
  const Restore* find(Id id) const;

  std::unique_ptr<disk::Tier> disk_;
  const disk::Root root_;
  PrefixTree& tree_;
  std::vector<KvPages>& pools_;
  Device& device_;
  const KvTierOptions options_;
  std::list<Restore> restores_;
  Id last_id_ = 0;
  uint64_t n_lost_ = 0;                      // of the disk's, that the tree knows of
  int64_t rests_until_ns_ = 0;               // nothing is read: it was too slow
  std::vector<std::byte> scratch_;           // one page, for records shorter than it
  std::vector<std::vector<int32_t>> pages_;  // by group, of the pages that are being put
  Counts counts_;
};

}  // namespace millrace
