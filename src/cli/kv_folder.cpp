#include "cli/kv_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/read_size.h"
#include "engine/disk/survey.h"
#include "hub/environment.h"

namespace millrace::cli {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kLeast = 10 * kGiB, kMost = 100 * kGiB;
// A drive of 1 TB is made for about 600 TB in five years: 330 GB a day.
constexpr uint64_t kDailyBytes = 200 * kGiB;

// A tenth of it, 10 to 100 GiB.
uint64_t default_bytes(uint64_t room) {
  return std::clamp(room / 10, kLeast, kMost);
}

// What is free, and what contexts take already: a server that is started again has the same.
uint64_t room_in(const std::string& folder) {
  uint64_t bytes = disk::free_bytes(folder);
  if (const auto folders = disk::survey(folder); folders.ok())
    for (const disk::FolderFacts& one : folders.value()) bytes += one.bytes;
  return bytes;
}

// Contexts of other models in the same folder count too. The oldest go while they take more than
// half; those that a server holds stay. What is left is for this model.
Result<uint64_t> make_room(const KvDisk& disk, const std::string& root) {
  MILLRACE_ASSIGN(const auto folders, disk::survey(disk.folder));
  uint64_t others = 0;
  for (const disk::FolderFacts& one : folders) others += one.name == root ? 0 : one.bytes;
  for (const disk::FolderFacts& one : folders) {
    if (others <= disk.bytes / 2) break;
    if (one.name == root || one.is_held) continue;
    if (!disk::remove_folder(disk.folder, one.name).ok()) continue;
    others -= one.bytes;
    fmt::print(stderr, "millrace: removed {} of contexts of {} from '{}' to stay inside {}\n",
               size_text(one.bytes), one.model.empty() ? one.name : one.model, disk.folder,
               size_text(disk.bytes));
  }
  return disk.bytes - std::min(disk.bytes, others);
}

Status start(Engine& engine, const Machine& machine, const std::string& model, const KvDisk& disk) {
  MILLRACE_ASSIGN(disk::Folder folder, disk::open_folder(disk.folder, engine.root()));
  MILLRACE_ASSIGN(const uint64_t bytes, make_room(disk, engine.root()));
  if (bytes < disk.bytes / 100)
    return error(Code::unavailable, "servers of other models use all {} of '{}'",
                 size_text(disk.bytes), disk.folder);
  // The name is for people: on a full disk what was written before can still be read.
  const Status named = disk::name_folder(*folder.files, model);
  if (!named.ok()) fmt::print(stderr, "millrace: {}\n", named.message());
  disk::TierOptions options;
  options.store.max_bytes = bytes;
  options.store.daily_bytes = disk.daily_bytes;
  options.cpus = machine.cpus;
  options.say = [](const std::string& line) { fmt::print(stderr, "millrace: {}\n", line); };
  return engine.keep_on_disk(std::move(folder), options);
}

}  // namespace

void add_kv_disk_options(Command& command, KvDiskOptions& options) {
  command
      .option("--kv-disk", options.folder,
              "Folder that contexts are kept in, so that they survive a restart, or off (default: "
              "the user's cache; off where other machines can connect)")
      .type_name("DIR");
  command
      .option("--kv-disk-size", options.size,
              "Disk space for contexts (default: a tenth of what is free, 10G to 100G)")
      .type_name("SIZE");
  command
      .option("--kv-disk-writes", options.writes,
              "Bytes written to it in a day at most, to spare the drive (default: 200G)")
      .type_name("SIZE");
}

std::string default_kv_folder() {
  return process_environment().xdg_cache_home + "/millrace/kv";
}

Result<KvDisk> read_kv_disk(const KvDiskOptions& options, bool is_loopback) {
  KvDisk out{.folder = options.folder, .daily_bytes = kDailyBytes};
  if (!options.writes.empty()) {
    MILLRACE_ASSIGN(const int64_t bytes, read_size("--kv-disk-writes", options.writes));
    out.daily_bytes = static_cast<uint64_t>(bytes);
  }
  if (!options.size.empty()) {
    MILLRACE_ASSIGN(const int64_t bytes, read_size("--kv-disk-size", options.size));
    out.bytes = static_cast<uint64_t>(bytes);
  }
  const auto off = [&](std::string why) {
    out.folder.clear();
    out.why_off = std::move(why);
    return out;
  };
  if (out.folder == "off") return off("--kv-disk off");
  out.is_asked = !out.folder.empty();
  if (!out.is_asked && !is_loopback)
    return off("other machines can connect; --kv-disk DIR turns it on");
  if (!out.is_asked) out.folder = default_kv_folder();
  if (out.bytes == 0) {
    const uint64_t room = room_in(out.folder);
    out.bytes = default_bytes(room);
    if (room < out.bytes)
      return off(fmt::format("'{}' has room for {} and {} are wanted; --kv-disk-size sets less",
                             out.folder, size_text(room), size_text(out.bytes)));
  }
  return out;
}

Result<std::string> keep_on_disk(Engine& engine, const Machine& machine, const std::string& model,
                                 const KvDisk& disk) {
  if (disk.folder.empty()) return fmt::format("off ({})", disk.why_off);
  if (engine.device().kind() == DeviceKind::cuda)
    return std::string("off (not yet done for --device cuda)");
  const int64_t start_ns = now_ns();
  const Status started = start(engine, machine, model, disk);
  if (!started.ok()) {
    if (disk.is_asked && started.code() == Code::invalid_argument) return started;
    return fmt::format("off ({})", started.message());
  }
  const disk::Store::Counts counts = engine.tier()->disk().store().counts();
  return fmt::format("{}, up to {}; {} pages of {} tokens are there ({}, found in {:.3f} s)",
                     engine.tier()->disk().path(), size_text(disk.bytes), counts.n_records,
                     kPageTokens, size_text(counts.bytes),
                     static_cast<double>(now_ns() - start_ns) * 1e-9);
}

}  // namespace millrace::cli
