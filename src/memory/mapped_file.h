// The owner of a file mapped for reading: how weights arrive. Pages come from disk when first
// touched and are dropped range by range once their bytes were repacked, so that a model and its
// packed copy need not both be resident.
//
// A page that cannot be read any more, because the file was cut short or its disk failed, raises
// SIGBUS in whoever touches it. The first file that is opened installs a handler for it: a fault
// inside a mapping of ours puts zeros in place of the rest of the mapping and marks the file as
// damaged, and the reader goes on. So a reader asks check() once it has what it wanted, and does
// not use it when the file is damaged. Any other fault goes to the handler that was there before.
// A file that is written to while it is mapped shows the new bytes: check() finds that as well.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"

namespace millrace {

class MappedFile {
 public:
  MappedFile() = default;
  // A regular file, read-only; an empty one gives empty bytes().
  static Result<MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& o) noexcept { *this = std::move(o); }
  MappedFile& operator=(MappedFile&& o) noexcept;

  std::span<const std::byte> bytes() const { return {data_, bytes_}; }

  // Whether bytes that were asked for could not be read. A load of one atomic, so that it can be
  // asked after every use.
  bool is_damaged() const;
  // The same as an error that names the file, also when its end is missing and nobody has read it,
  // or when it was written to. One system call, about a microsecond.
  Status check() const;

  // Gives back the memory of the whole pages inside [offset, offset + n). The bytes stay readable:
  // touching them fetches them from the file again.
  void drop(size_t offset, size_t n) const;
  // The same of some of bytes(); nothing where they lie elsewhere.
  void drop(std::span<const std::byte> part) const;

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  std::string path_;
  unsigned long device_ = 0, inode_ = 0;
  int64_t changed_ns_ = 0;  // when it was last written to
  int guard_ = -1;          // its place among the guarded mappings
};

}  // namespace millrace
