// Puts faults between the disk tier and its files: what a disk does on a bad day, drawn by chance
// or on demand. A bit that flips does so in what is read or in what is written.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/philox.h"
#include "engine/disk/files.h"

namespace millrace::disk {

enum class Fault : unsigned char {
  none,
  short_write,
  bit_flip,
  no_space,
  io_error,
  delay,
  missing
};
inline constexpr int kFaults = 7;

class FaultyFiles final : public Files {
 public:
  // Every transfer and every opening fails with probability `share`, in a way that is drawn.
  FaultyFiles(std::unique_ptr<Files> files, uint64_t seed, double share)
      : files_(std::move(files)), rng_(seed), share_(share) {}

  // The next one that can be hit has this fault.
  void next(Fault fault) {
    const std::lock_guard lock(mutex_);
    next_ = fault;
  }
  std::atomic<bool> keeps_files = false;   // nothing can be removed
  std::atomic<bool> stalls = false;        // reads and writes do not end
  std::atomic<bool> cannot_punch = false;  // as some file systems
  int64_t n_injected(Fault fault) const { return n_injected_[static_cast<size_t>(fault)]; }

  Result<std::vector<Listed>> list() override { return files_->list(); }
  Result<int> create(const std::string& name) override {
    const Fault fault = draw({Fault::no_space, Fault::io_error});
    if (fault != Fault::none)
      return error(Code::io_error, "cannot create '{}': {}", name,
                   strerror(fault == Fault::no_space ? ENOSPC : EIO));
    return files_->create(name);
  }
  Result<int> open(const std::string& name) override {
    const Fault fault = draw({Fault::missing, Fault::io_error});
    if (fault != Fault::none) return error(Code::not_found, "injected at the opening of {}", name);
    return files_->open(name);
  }
  void close(int file) override { files_->close(file); }
  Status remove(const std::string& name) override {
    if (keeps_files) return error(Code::io_error, "cannot remove '{}': injected", name);
    return files_->remove(name);
  }
  Result<uint64_t> punch(const std::string& name, uint64_t offset, uint64_t bytes) override {
    if (cannot_punch) return error(Code::unsupported, "injected at a part of '{}'", name);
    const Fault fault = draw({Fault::missing, Fault::io_error});
    if (fault == Fault::missing) return error(Code::not_found, "injected at a part of '{}'", name);
    if (fault == Fault::io_error) return error(Code::io_error, "injected at a part of '{}'", name);
    return files_->punch(name, offset, bytes);
  }

  void run(std::span<Transfer> transfers) override {
    while (stalls) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (Transfer& one : transfers) run(one);
  }

 private:
  void run(Transfer& one) {
    const bool writes = one.kind == Transfer::Kind::write;
    const Fault fault = writes ? draw({Fault::short_write, Fault::bit_flip, Fault::no_space,
                                       Fault::io_error, Fault::delay})
                               : draw({Fault::bit_flip, Fault::io_error, Fault::delay});
    Transfer whole = one;
    if (fault == Fault::delay) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (fault == Fault::short_write) whole.bytes /= 2;  // and the caller is told that all is well
    std::vector<std::byte> copy;
    if (fault == Fault::bit_flip && writes && one.bytes > 0) {
      copy.assign(one.data, one.data + one.bytes);
      whole.data = copy.data();
      flip(whole);
    }
    if (fault != Fault::no_space && fault != Fault::io_error) files_->run({&whole, 1});
    if (fault == Fault::bit_flip && !writes && one.bytes > 0) flip(one);
    one.problem = fault == Fault::no_space   ? ENOSPC
                  : fault == Fault::io_error ? EIO
                                             : whole.problem;
  }
  void flip(const Transfer& one) {
    const uint64_t bit = rng_.below(one.bytes * 8);
    one.data[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
  Fault draw(std::initializer_list<Fault> possible) {
    const std::lock_guard lock(mutex_);
    Fault out = Fault::none;
    for (const Fault fault : possible)
      if (fault == next_) out = fault;
    if (out != Fault::none)
      next_ = Fault::none;
    else if (static_cast<double>(rng_.below(1'000'000)) < share_ * 1e6)
      out = *(possible.begin() + rng_.below(possible.size()));
    ++n_injected_[static_cast<size_t>(out)];
    return out;
  }

  std::unique_ptr<Files> files_;
  std::mutex mutex_;
  Rng rng_;
  const double share_;
  Fault next_ = Fault::none;
  std::array<std::atomic<int64_t>, kFaults> n_injected_{};
};

}  // namespace millrace::disk
