// One read-only look at the lab's database after another, for a server that must outlive it: the
// file may be missing, damaged, foreign, replaced or written to meanwhile. Used by one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "lab/notebook/notebook.h"

namespace millrace::lab {

class Reader {
 public:
  explicit Reader(std::filesystem::path path) : path_(std::move(path)) {}

  // The notebook as it is now, opened again where the file was replaced or the last look failed. A
  // question that takes longer than two seconds is broken off with an error.
  Result<Notebook*> open();
  void close() { notebook_.reset(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  static int is_late(void* reader);

  std::filesystem::path path_;
  std::optional<Notebook> notebook_;
  uint64_t device_ = 0, inode_ = 0;  // of the file that is open
  int64_t deadline_ns_ = 0;
};

}  // namespace millrace::lab
