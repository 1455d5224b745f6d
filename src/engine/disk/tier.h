// The disk's own thread. The engine's thread fills slots with copies of pages to be written, and
// asks for records to be read into others; it never waits. Slots are all there is: when the disk is
// slow they are in use, and whoever wants one comes again later. All memory is taken at the start.
//
// Trouble (a full disk, EIO) stops writing for a while; one line says so, and a count. Reads that
// fail are misses.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "engine/disk/files.h"
#include "engine/disk/store.h"
#include "memory/host.h"

namespace millrace::disk {

struct TierOptions {
  StoreOptions store = {};
  size_t slot_bytes = 0;                                                 // the longest record
  size_t write_bytes = size_t{32} << 20, read_bytes = size_t{32} << 20;  // of all slots
  std::vector<int> cpus = {};  // where the thread may run; empty: where its maker does
  double pause_s = 30;         // without writing after a write failed
  std::function<void(const std::string&)> say = {};  // one line for people; from any thread
};

class Tier {
 public:
  static Result<std::unique_ptr<Tier>> open(Folder folder, const TierOptions& options);
  ~Tier();  // writes what was handed over

  Store& store() { return *store_; }
  const std::string& path() const { return folder_.path; }

  // ---- for the engine's thread
  struct WriteSlot {
    Store::Writing record;
  };
  // Null: none is free, writing is off, or the day's budget is spent.
  WriteSlot* to_fill(uint64_t bytes);
  void write(WriteSlot* slot);
  void give_back(WriteSlot* slot);  // one that was not filled after all

  struct ReadSlot {
    Store::Reading record;
    std::byte* data = nullptr;
    uint64_t restore = 0;  // the caller's own words
    size_t page = 0;
  };
  ReadSlot* to_read();  // null: none is free
  void read(ReadSlot* slot);
  ReadSlot* take_read();  // one that is done; null: none
  void give_back(ReadSlot* slot);

  bool is_full() const;          // all slots for writing are in use, and will be free again
  bool is_writing() const;       // something handed over is not on disk yet
  uint64_t n_lost() const;       // records handed over that could not be written
  int64_t off_until_ns() const;  // when writing is tried again; 0: it is not off
  bool wait(int64_t until_ns);   // for something to end; false: it got too late

  struct Counts {
    Store::Counts store = {};
    // Tries, and records in them: each counts again when it is handed over again.
    uint64_t n_write_failures = 0, n_lost = 0;
    bool is_off = false;  // no writing for now
  };
  Counts counts() const;

 private:
  Tier(Folder folder, const TierOptions& options) : folder_(std::move(folder)), options_(options) {}
  Status make_slots();
  void run() noexcept;
  void write_some(std::unique_lock<std::mutex>& lock);
  void read_some(std::unique_lock<std::mutex>& lock);
  void note_failure(const Status& why, size_t n_lost);

  Folder folder_;
  const TierOptions options_;
  std::unique_ptr<Store> store_;
  HostBuffer memory_;
  std::vector<WriteSlot> write_slots_;
  std::vector<ReadSlot> read_slots_;

  mutable std::mutex mutex_;
  std::condition_variable changed_, ended_;
  std::vector<WriteSlot*> free_writes_, writes_;
  std::vector<ReadSlot*> free_reads_, reads_, done_reads_;
  std::vector<Store::Writing*> writing_;  // the thread's
  std::vector<Store::Reading*> reading_;
  size_t n_busy_writes_ = 0;
  uint64_t n_ended_ = 0;
  bool stops_ = false, is_off_ = false;
  int64_t off_until_ns_ = 0;
  uint64_t n_write_failures_ = 0, n_lost_ = 0;
  std::thread thread_;
};

}  // namespace millrace::disk
