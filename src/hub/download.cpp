#include "hub/download.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace millrace {
namespace {

namespace fs = std::filesystem;

// PATH.part, open and locked for as long as this lives.
class PartFile : public HttpSink {
 public:
  PartFile(const Download& what, const std::function<void(uint64_t)>& progress)
      : path_(what.path + ".part"), bytes_(what.bytes), progress_(progress) {}
  ~PartFile() override {
    if (fd_ >= 0) close(fd_);
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  Status open();
  const std::string& path() const { return path_; }
  uint64_t size() const override { return size_; }
  bool is_whole() const override { return size_ == bytes_; }
  Status restart() override;
  Status take(const char* data, size_t n) override;

 private:
  Status lock();
  Status failed(const char* what) const {
    return error(Code::io_error, "cannot {} {}: {}", what, path_, std::strerror(errno));
  }
  const std::string path_;
  const uint64_t bytes_;
  const std::function<void(uint64_t)>& progress_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// Whether the name still leads to what the descriptor holds: another process may have moved the
// file into place between open and lock.
bool is_at(int fd, const std::string& path) {
  struct stat held {
  }, named{};
  return fstat(fd, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

Status PartFile::lock() {
  for (int n_tries = 0; n_tries < 100; ++n_tries) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd_ < 0) return failed("write");
    if (flock(fd_, LOCK_EX | LOCK_NB) != 0)
      return error(Code::unavailable, "another process is downloading {}", path_);
    if (is_at(fd_, path_)) return {};
    close(fd_);
  }
  return error(Code::unavailable, "{} was moved or replaced during the download", path_);
}

Status PartFile::open() {
  MILLRACE_TRY(lock());
  const off_t end = lseek(fd_, 0, SEEK_END);
  if (end < 0) return failed("read");
  size_ = static_cast<uint64_t>(end);
  return size_ > bytes_ ? restart() : Status();
}

Status PartFile::restart() {
  if (ftruncate(fd_, 0) != 0 || lseek(fd_, 0, SEEK_SET) != 0) return failed("empty");
  size_ = 0;
  return {};
}

Status PartFile::take(const char* data, size_t n) {
  if (n > bytes_ - size_)
    return error(Code::corrupt, "the server sent more than the {} bytes of {}", bytes_, path_);
  while (n > 0) {
    const ssize_t written = write(fd_, data, n);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write");
    data += written;
    n -= static_cast<size_t>(written);
    size_ += static_cast<uint64_t>(written);
  }
  progress_(size_);
  return {};
}

Status sync_path(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0 || fsync(fd) != 0) {
    const Status failed =
        error(Code::io_error, "cannot write {} to the disk: {}", path, std::strerror(errno));
    if (fd >= 0) close(fd);
    return failed;
  }
  close(fd);
  return {};
}

Status check(const std::string& path, const Checksum& checksum, const HttpOptions& options) {
  if (checksum.hex.empty()) return {};
  MILLRACE_ASSIGN(const std::string hex, digest_of_file(path, checksum.kind, options.stopped));
  if (hex == checksum.hex) return {};
  return error(Code::corrupt, "{}: wrong checksum: {} instead of {}", path, hex, checksum.hex);
}

}  // namespace

Status move_into_place(const std::string& from, const std::string& to) {
  MILLRACE_TRY(sync_path(from, O_RDONLY));
  if (std::rename(from.c_str(), to.c_str()) != 0)
    return error(Code::io_error, "cannot move {} to {}: {}", from, to, std::strerror(errno));
  return sync_path(fs::path(to).parent_path().string(), O_RDONLY | O_DIRECTORY);
}

Status need_room(const std::string& folder, uint64_t bytes) {
  std::error_code failed;
  const auto room = fs::space(folder, failed);
  if (failed || room.available >= bytes) return {};
  return error(Code::io_error,
               "{} has {} MB of free space, and {} MB are needed; free some, or set "
               "XDG_CACHE_HOME to another disk",
               folder, room.available / 1'000'000, bytes / 1'000'000);
}

Status make_folder(const std::string& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (!failed && fs::is_directory(path, failed)) return {};
  return error(Code::io_error, "cannot create the folder {}: {}", path,
               failed ? failed.message() : "it exists and is not a folder");
}

Status download(const Download& what, const HttpOptions& options,
                const std::function<void(uint64_t)>& progress) {
  MILLRACE_TRY(make_folder(fs::path(what.path).parent_path().string()));
  PartFile part(what, progress);
  MILLRACE_TRY(part.open());
  bool is_resumed = part.size() > 0 && !what.checksum.hex.empty();
  if (!is_resumed) MILLRACE_TRY(part.restart());
  for (;; is_resumed = false) {
    progress(part.size());
    if (!part.is_whole() || what.bytes == 0) MILLRACE_TRY(http_get(what.url, part, options));
    const Status checked = check(part.path(), what.checksum, options);
    if (checked.ok()) return move_into_place(part.path(), what.path);
    if (checked.code() != Code::corrupt) return checked;
    MILLRACE_TRY(part.restart());
    // What an earlier call left may be of another version of the file.
    if (!is_resumed) {
      std::remove(part.path().c_str());
      return checked;
    }
  }
}

}  // namespace millrace
