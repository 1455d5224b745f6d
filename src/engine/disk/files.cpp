#include "engine/disk/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "engine/disk/ring.h"

namespace millrace::disk {
namespace {

constexpr mode_t kFolderMode = 0700, kFileMode = 0600;
// Who looks whether a folder is held (survey.h) has its lock for a moment.
constexpr int kLockTries = 20;
constexpr auto kLockPause = std::chrono::milliseconds(10);

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Status failed(const char* what, const std::string& path) {
  const int problem = errno;
  const Code code = problem == ENOENT                        ? Code::not_found
                    : problem == EMFILE || problem == ENFILE ? Code::unavailable
                                                             : Code::io_error;
  return error(code, "cannot {} '{}': {}", what, path, strerror(problem));
}

class FolderFiles final : public Files {
 public:
  FolderFiles(Descriptor folder, Descriptor lock, std::string path)
      : folder_(std::move(folder)), lock_(std::move(lock)), path_(std::move(path)) {}

  Result<std::vector<Listed>> list() override {
    // A descriptor of its own: the position in a folder is shared by duplicates.
    const int fd = openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return failed("read the folder", path_);
    DIR* dir = fdopendir(fd);
    if (dir == nullptr) {
      ::close(fd);
      return failed("read the folder", path_);
    }
    std::vector<Listed> out;
    while (const dirent* entry = readdir(dir)) {
      struct stat facts {};
      if (fstatat(fd, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISREG(facts.st_mode))
        out.push_back({entry->d_name, static_cast<uint64_t>(facts.st_size), bytes_on_disk(facts)});
    }
    closedir(dir);
    return out;
  }

  Result<int> create(const std::string& name) override {
    return opened(openat(folder_.get(), name.c_str(),
                         O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode),
                  "create", name);
  }

  Result<int> open(const std::string& name) override {
    return opened(openat(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC), "open",
                  name);
  }

  void close(int file) override { ::close(file); }

  Status remove(const std::string& name) override {
    if (unlinkat(folder_.get(), name.c_str(), 0) != 0 && errno != ENOENT)
      return failed("remove", path_ + "/" + name);
    return {};
  }

  Result<uint64_t> punch(const std::string& name, uint64_t offset, uint64_t bytes) override {
    const std::string path = path_ + "/" + name;
    const Descriptor file(openat(folder_.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    struct stat before {};
    struct stat after {};
    if (file.get() < 0 || fstat(file.get(), &before) != 0) return failed("open", path);
    if (fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
      if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) return failed("cut", path);
      return error(Code::unsupported, "cannot give back a part of '{}': {}", path, strerror(errno));
    }
    if (fstat(file.get(), &after) != 0) return failed("look at", path);
    const uint64_t had = bytes_on_disk(before), has = bytes_on_disk(after);
    return had - std::min(had, has);
  }

  void run(std::span<Transfer> transfers) override { ring_.run(transfers); }

 private:
  Result<int> opened(int fd, const char* what, const std::string& name) {
    if (fd < 0) return failed(what, path_ + "/" + name);
    return fd;
  }

  Descriptor folder_, lock_;
  std::string path_;
  Ring ring_;
};

// The folder that models' folders lie in may be a user's own, with other things in it.
Result<Descriptor> open_parent(const std::string& path) {
  std::error_code made;
  const std::filesystem::path parent(path);
  if (!std::filesystem::exists(parent, made)) {
    if (parent.has_parent_path()) std::filesystem::create_directories(parent.parent_path(), made);
    if (mkdir(path.c_str(), kFolderMode) != 0 && errno != EEXIST)
      return failed("make the folder", path);
  }
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) return failed("open the folder", path);
  struct stat facts {};
  if (fstat(fd.get(), &facts) != 0) return failed("look at", path);
  if (facts.st_uid != geteuid() || (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return error(Code::invalid_argument,
                 "the folder '{}' belongs to another user, or others may write to it; give one of "
                 "your own with --kv-disk, or run chmod 700 on it",
                 path);
  return fd;
}

Result<Descriptor> open_own(const Descriptor& parent, const std::string& name,
                            const std::string& path) {
  if (mkdirat(parent.get(), name.c_str(), kFolderMode) != 0 && errno != EEXIST)
    return failed("make the folder", path);
  Descriptor fd(
      openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) return failed("open the folder", path);
  struct stat facts {};
  if (fstat(fd.get(), &facts) != 0) return failed("look at", path);
  if (facts.st_uid != geteuid())
    return error(Code::invalid_argument, "the folder '{}' belongs to another user", path);
  if ((facts.st_mode & 0777) != kFolderMode && fchmod(fd.get(), kFolderMode) != 0)
    return failed("make private", path);
  return fd;
}

// Whether the file that was opened is still the one of that name: who clears a folder removes it.
bool is_still(const Descriptor& file, const Descriptor& folder, const char* name) {
  struct stat opened {};
  struct stat named {};
  return fstat(file.get(), &opened) == 0 &&
         fstatat(folder.get(), name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

Result<Descriptor> lock_folder(const Descriptor& folder, const std::string& path) {
  for (int tries = 0; tries < kLockTries; ++tries) {
    if (tries > 0) std::this_thread::sleep_for(kLockPause);
    Descriptor lock(
        openat(folder.get(), kLockName, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kFileMode));
    if (lock.get() < 0) return failed("open the lock", path);
    if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
      if (is_still(lock, folder, kLockName)) return lock;
    } else if (errno != EWOULDBLOCK) {
      return failed("lock", path);
    }
  }
  return error(Code::unavailable, "another process uses '{}'", path);
}

// A link with a slash behind it would be followed.
std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

uint64_t bytes_on_disk(const struct stat& facts) {
  constexpr uint64_t kBlock = 512;  // of st_blocks, whatever the file system's own
  return std::min(static_cast<uint64_t>(facts.st_size),
                  static_cast<uint64_t>(facts.st_blocks) * kBlock);
}

Result<Folder> open_folder(const std::string& parent, const std::string& name) {
  const std::string path = parent + "/" + name;
  MILLRACE_ASSIGN(const Descriptor above, open_parent(without_slashes(parent)));
  MILLRACE_ASSIGN(Descriptor folder, open_own(above, name, path));
  MILLRACE_ASSIGN(Descriptor lock, lock_folder(folder, path));
  return Folder{path, std::make_unique<FolderFiles>(std::move(folder), std::move(lock), path)};
}

uint64_t free_bytes(const std::string& path) {
  std::filesystem::path at(path);
  std::error_code ignored;
  while (!std::filesystem::exists(at, ignored) && at.has_parent_path() && at != at.parent_path())
    at = at.parent_path();
  struct statvfs facts {};
  if (statvfs(at.c_str(), &facts) != 0) return 0;
  return static_cast<uint64_t>(facts.f_bavail) * facts.f_frsize;
}

}  // namespace millrace::disk
