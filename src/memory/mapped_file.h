// The owner of a file mapped for reading: how weights arrive. Pages come from disk when first
// touched and are dropped range by range once their bytes were repacked, so that a model and its
// packed copy need not both be resident. A file that another process cuts short while it is mapped
// ends this one with SIGBUS, as with every mapping; a model file is not to be edited in place.
#pragma once

#include <cstddef>
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
  MappedFile(MappedFile&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  MappedFile& operator=(MappedFile&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }

  std::span<const std::byte> bytes() const { return {data_, bytes_}; }

  // Gives back the memory of the whole pages inside [offset, offset + n). The bytes stay readable:
  // touching them fetches them from the file again.
  void drop(size_t offset, size_t n) const;
  // The same of some of bytes(); nothing where they lie elsewhere.
  void drop(std::span<const std::byte> part) const;

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace millrace
