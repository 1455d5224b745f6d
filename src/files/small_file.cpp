#include "files/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace millrace {
namespace {

Result<std::string> read_all(int fd, const std::string& path, size_t max_bytes) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return error(Code::io_error, "{} is not a regular file", path);
  std::string text;
  char part[16384];
  for (;;) {
    const ssize_t n = read(fd, part, sizeof part);
    if (n < 0) return error(Code::io_error, "cannot read {}: {}", path, std::strerror(errno));
    if (n == 0) return text;
    text.append(part, static_cast<size_t>(n));
    if (text.size() > max_bytes)
      return error(Code::corrupt, "{} is larger than {} bytes, which is the limit", path,
                   max_bytes);
  }
}

}  // namespace

Result<std::string> read_small_file(const std::string& path, size_t max_bytes) {
  // O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return error(Code::not_found, "cannot open {}: {}", path, std::strerror(errno));
  auto text = read_all(fd, path, max_bytes);
  close(fd);
  return text;
}

}  // namespace millrace
