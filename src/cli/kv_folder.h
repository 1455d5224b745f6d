// Where a server keeps contexts on disk, and how much of it: the options, their defaults, and the
// start of it.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "cli/app.h"
#include "engine/engine.h"
#include "machine/machine.h"

namespace millrace::cli {

struct KvDiskOptions {
  std::string folder, size, writes;  // as given; empty: the defaults
};
void add_kv_disk_options(Command& command, KvDiskOptions& options);

struct KvDisk {
  std::string folder;     // empty: off
  bool is_asked = false;  // by an option: what is wrong with it is an error
  uint64_t bytes = 0, daily_bytes = 0;
  std::string why_off = {};
};
// $XDG_CACHE_HOME/millrace/kv.
std::string default_kv_folder();
// A server that others can reach keeps nothing on disk unless it is told to.
Result<KvDisk> read_kv_disk(const KvDiskOptions& options, bool is_loopback);

// Starts it; what became of it, for people. A folder that another process holds, or a disk that
// does not work, is no error: contexts are kept in memory alone then.
Result<std::string> keep_on_disk(Engine& engine, const Machine& machine, const std::string& model,
                                 const KvDisk& disk);

}  // namespace millrace::cli
