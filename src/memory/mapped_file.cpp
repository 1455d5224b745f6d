#include "memory/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include "memory/mapping_guard.h"

namespace millrace {
namespace {

Status system_error(const std::string& path, std::string_view what) {
  const int e = errno;
  const Code code = e == ENOENT   ? Code::not_found
                    : e == ENOMEM ? Code::out_of_memory
                                  : Code::io_error;
  return error(code, "cannot {} {}: {}", what, path, std::strerror(e));
}

int64_t changed_ns(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

// Closed once mapped: the mapping keeps the file.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // Without O_NONBLOCK the open of a named pipe would wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return system_error(path, "open");
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return system_error(path, "read the size of");
  if (!S_ISREG(info.st_mode))
    return error(Code::invalid_argument, "{} is not a regular file", path);
  MappedFile mapped;
  if (info.st_size == 0) return mapped;
  const auto bytes = static_cast<size_t>(info.st_size);
  void* p = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (p == MAP_FAILED) return system_error(path, "map");
  mapped.data_ = static_cast<std::byte*>(p);
  mapped.bytes_ = bytes;
  mapped.path_ = path;
  mapped.device_ = info.st_dev;
  mapped.inode_ = info.st_ino;
  mapped.changed_ns_ = changed_ns(info);
  mapped.guard_ = mapping_guard::add(mapped.data_, bytes);
  if (mapped.guard_ < 0)
    return error(Code::unavailable, "cannot map {}: too many files are mapped already", path);
  return mapped;
}

MappedFile::~MappedFile() {
  mapping_guard::remove(guard_);
  if (data_ != nullptr) munmap(data_, bytes_);
}

MappedFile& MappedFile::operator=(MappedFile&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(bytes_, o.bytes_);
  std::swap(path_, o.path_);
  std::swap(device_, o.device_);
  std::swap(inode_, o.inode_);
  std::swap(changed_ns_, o.changed_ns_);
  std::swap(guard_, o.guard_);
  return *this;
}

bool MappedFile::is_damaged() const {
  return mapping_guard::is_damaged(guard_);
}

// The page in which a shorter file ends is readable to its end, as zeros: only the size tells. A
// file that took its place by name is another one.
Status MappedFile::check() const {
  struct stat now {};
  const bool is_other =
      data_ != nullptr && stat(path_.c_str(), &now) == 0 && now.st_dev == device_ &&
      now.st_ino == inode_ &&
      (static_cast<size_t>(now.st_size) < bytes_ || changed_ns(now) != changed_ns_);
  if (!is_other && !is_damaged()) return {};
  return error(
      Code::io_error,
      "{} was truncated, written to or could not be read while it was in use; start again, "
      "and copy or download the file again if it is damaged",
      path_);
}

void MappedFile::drop(size_t offset, size_t n) const {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (offset >= bytes_) return;
  const size_t end = offset + std::min(n, bytes_ - offset);
  const size_t first = (offset + page - 1) / page * page;
  // The file's last page counts as whole: nothing but this file is on it.
  const size_t last = end == bytes_ ? end : end / page * page;
  if (first < last) (void)madvise(data_ + first, last - first, MADV_DONTNEED);
}

void MappedFile::drop(std::span<const std::byte> part) const {
  const auto all = bytes();
  const std::less_equal<const std::byte*> not_after;  // also of pointers into different arrays
  if (all.empty() || !not_after(all.data(), part.data()) ||
      !not_after(part.data(), all.data() + all.size()))
    return;
  drop(static_cast<size_t>(part.data() - all.data()), part.size());
}

}  // namespace millrace
