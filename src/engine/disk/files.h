// The files of one folder, as the disk tier reads and writes them: nothing else of the tier knows
// the operating system, so a test can put faults in between (faulty_files_test.h). It belongs to
// one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

struct stat;

namespace millrace::disk {

inline constexpr char kLockName[] = "lock";  // in a folder: locked by the process that uses it

// One read or write. `problem` says how it went: 0, or an errno; a read past the end is ENODATA.
struct Transfer {
  enum class Kind : unsigned char { read, write };
  Kind kind = Kind::read;
  int file = -1;
  uint64_t offset = 0;
  std::byte* data = nullptr;
  size_t bytes = 0;
  int problem = 0;
};

class Files {
 public:
  struct Listed {
    std::string name;
    uint64_t bytes = 0;
    uint64_t disk_bytes = 0;  // that it takes: fewer where parts were given back
  };

  virtual ~Files() = default;
  virtual Result<std::vector<Listed>> list() = 0;           // plain files alone
  virtual Result<int> create(const std::string& name) = 0;  // a new file, to be written
  // An old one, to be read; unavailable where there are no descriptors left.
  virtual Result<int> open(const std::string& name) = 0;
  virtual void close(int file) = 0;
  virtual Status remove(const std::string& name) = 0;
  // Gives a part of a file back to the disk; zeros are read there from now on. How many bytes that
  // were; unsupported where the file system cannot.
  virtual Result<uint64_t> punch(const std::string& name, uint64_t offset, uint64_t bytes) = 0;
  // All of them, in any order, at once where the system can.
  virtual void run(std::span<Transfer> transfers) = 0;
};

// A folder of ours, held by this process alone until it is destroyed.
struct Folder {
  std::string path;  // for people
  std::unique_ptr<Files> files;
};

// `parent`/`name`, made where it is missing: mode 0700, owned by this user, no symbolic links
// followed. Unavailable where another process holds it.
Result<Folder> open_folder(const std::string& parent, const std::string& name);

// What a file takes: less than its size where parts were given back.
uint64_t bytes_on_disk(const struct stat& facts);

// Bytes that this user can still write where `path` is or would be; 0 where that is unknown.
uint64_t free_bytes(const std::string& path);

}  // namespace millrace::disk
