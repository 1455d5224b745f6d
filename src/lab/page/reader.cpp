#include "lab/page/reader.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/sqlite.h"

namespace millrace::lab {
namespace {

constexpr int64_t kPatience_ns = 2'000'000'000;
constexpr int kOpsBetweenLooks = 10000;  // SQLite's own: under a millisecond

}  // namespace

int Reader::is_late(void* reader) {
  return now_ns() > static_cast<Reader*>(reader)->deadline_ns_ ? 1 : 0;
}

Result<Notebook*> Reader::open() {
  struct stat file {};
  const bool is_there = stat(path_.c_str(), &file) == 0;
  if (!is_there || file.st_dev != device_ || file.st_ino != inode_) close();
  if (!notebook_) {
    MILLRACE_ASSIGN(Store store, Store::open_to_read(path_));
    sqlite3_progress_handler(store.connection(), kOpsBetweenLooks, is_late, this);
    notebook_.emplace(std::move(store));
    device_ = file.st_dev;
    inode_ = file.st_ino;
  }
  deadline_ns_ = now_ns() + kPatience_ns;
  return &*notebook_;
}

}  // namespace millrace::lab
