// Records of one model's contexts in append-only segments, and the index that finds them by their
// tokens. Nothing is synced: a record that a power cut tore is a miss, as is one that is damaged or
// foreign; each is counted, none is an error. The size is a hard limit: the record that is worth
// least goes (engine/retention.h), or the segment that was used least recently with all records in
// it. Reading and writing belong to one thread; finding may be done from any, and waits for no
// disk.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "engine/disk/files.h"
#include "engine/disk/record.h"
#include "engine/retention.h"

namespace millrace::disk {

struct StoreOptions {
  Root root = {};
  uint64_t max_bytes = uint64_t{10} << 30;  // of all files together
  uint64_t daily_bytes = UINT64_MAX;        // written in one day (UTC)
  uint64_t max_records = 1'000'000;         // the index takes 0.8 KB of memory for each
  uint64_t segment_bytes = 0;               // 0: a part of max_bytes
  const Retention* retention = nullptr;     // says what goes first; null: what was used least
  std::function<int64_t()> now_s = {};      // unix time; none: the system's
};

class Store {
 public:
  // Reads the entries of all segments. The files outlive it.
  static Result<std::unique_ptr<Store>> open(Files& files, const StoreOptions& options);
  ~Store();

  // From any thread. The record after `before` that begins with most of these tokens, at most a
  // page of them; counts as a use.
  struct Found {
    Hash128 prefix;
    uint32_t n_common = 0;  // tokens asked for that it begins with
    uint32_t n_tokens = 0;
    uint32_t groups = 0;
    std::array<int32_t, kPageIds> tokens;
  };
  std::optional<Found> find(const Hash128& before, std::span<const int32_t> tokens,
                            const Use& use = {});
  bool is_by_worth() const { return options_.retention != nullptr; }
  // Whether a record has all these groups.
  bool has(const Hash128& prefix, uint32_t groups) const;

  // Parts of the entry say how `payload` is cut. On failure nothing was written that will be found.
  struct Writing {
    Entry entry;
    std::byte* payload = nullptr;
    Uses uses = {};
  };
  Status write(std::span<Writing* const> records);
  // The parts of a record, each to where it is wanted (null: not). A part that cannot be read or is
  // not what was written makes the record a miss: it is forgotten.
  struct Reading {
    Hash128 prefix;
    std::array<std::byte*, kMaxParts> to = {};
    std::array<size_t, kMaxParts> bytes = {};  // that fit there
    bool is_good = false;
  };
  void read(std::span<Reading* const> records);
  // Whether the day's budget has room for so much.
  bool may_write(uint64_t bytes);

  struct Counts {
    uint64_t n_records = 0, n_segments = 0, bytes = 0;  // now
    uint64_t n_damaged = 0, n_foreign = 0;              // entries met at the start
    uint64_t n_dropped = 0;                             // records that made room
    uint64_t n_bad_reads = 0;                           // verify failures, missing files, EIO
    uint64_t bytes_written = 0, bytes_read = 0;
    int64_t oldest_s = 0, newest_s = 0;  // when the records were written
  };
  Counts counts() const;

 private:
  // Where a record lies.
  struct Extent {
    uint64_t segment = 0, index = 0;  // of its entry
    uint64_t offset = 0, bytes = 0;   // of its parts
  };
  static Extent extent_of(const Entry& entry, uint64_t segment, uint64_t index) {
    return {segment, index, entry.offset, entry.payload_bytes()};
  }
  struct Record {
    Entry entry;
    uint64_t segment = 0;
    uint64_t index = 0;
    Uses uses = {};
    int64_t used_s = 0;
    size_t leaf_at = kNoLeaf;  // in leaves_

    Extent extent() const { return extent_of(entry, segment, index); }
  };
  static constexpr size_t kNoLeaf = SIZE_MAX;
  struct Segment {
    uint64_t bytes = 0;  // of both files
    uint64_t used = 0;   // n_uses_ when it was used last; 0: never. A clock may be set back.
    int64_t first_s = 0, last_s = 0;
    std::vector<Hash128> records;
    uint64_t n_live = 0;  // of them that can be found
  };
  // Where a record stands: by what is before it, then by its tokens. So whoever begins like some
  // tokens for longest stands beside them.
  struct Place {
    Hash128 before;
    std::span<const int32_t> ids;
  };
  struct ByPlace {
    using is_transparent = void;
    static Place of(const Entry* entry) { return {entry->before, entry->ids()}; }
    static Place of(const Place& place) { return place; }
    static bool is_less(const Place& a, const Place& b);
    bool operator()(const auto& a, const auto& b) const { return is_less(of(a), of(b)); }
  };
  // Of the segment that is written.
  struct Open {
    uint64_t number = 0;
    int ids = -1, pages = -1;
    uint64_t n_entries = 0, n_page_bytes = 0;
  };

  Store(Files& files, const StoreOptions& options);
  Status scan();
  void scan_segment(uint64_t number, uint64_t page_bytes);
  // Null: there is one with more, or it is one too many.
  Record* add(const Entry& entry, uint64_t segment, uint64_t index);
  void forget(const Hash128& prefix);
  void forget_beginnings(const Entry& entry);
  // ---- what goes first by worth (store_worth.cpp)
  void note_dead(const Extent& extent);
  void note_leaf(Record& record);
  void leave_leaves(Record& record);
  bool has_after(const Hash128& prefix) const;
  Retention::Candidate weigh(const Record& record) const;
  std::optional<Hash128> least_worth_record();
  uint64_t least_worth_segment() const;
  uint64_t empty_segment() const;
  Status drop_least();
  Status give_back(const Extent& extent);
  Status give_back_dead();
  // ----
  Status make_room(uint64_t bytes);
  Status drop(uint64_t number);
  void drop_if_empty(uint64_t number);
  uint64_t least_used() const;
  Status need_segment(uint64_t bytes);
  void close_segment();
  void note_day();
  uint64_t note_written(uint64_t bytes);
  int64_t now_s() const;

  Files& files_;
  const StoreOptions options_;
  mutable std::mutex mutex_;  // of what follows, up to the line
  std::unordered_map<Hash128, Record> records_;
  std::set<const Entry*, ByPlace> in_order_;  // those of records_
  std::map<uint64_t, Segment> segments_;
  std::vector<Hash128> leaves_;  // records that no other goes on from
  std::vector<Extent> dead_;     // of records that were forgotten, not yet given back
  uint64_t n_draws_ = 0;
  Counts counts_;
  uint64_t n_uses_ = 0;
  int64_t day_ = 0;
  uint64_t written_today_ = 0;
  // ----
  Open open_;
  uint64_t last_number_ = 0;
  bool can_punch_ = true;
  std::vector<Transfer> transfers_;
};

}  // namespace millrace::disk
