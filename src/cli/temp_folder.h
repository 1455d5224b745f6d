// A folder of our own for a while (under TMPDIR), removed with the object and all that is in it.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "base/status.h"

namespace millrace::cli {

class TempFolder {
 public:
  // `what` is a part of its name.
  static Result<TempFolder> make(const std::string& what) {
    std::error_code failed;
    const std::filesystem::path root = std::filesystem::temp_directory_path(failed);
    if (failed)
      return error(Code::io_error, "no folder for temporary files (TMPDIR): {}", failed.message());
    std::string form = (root / ("millrace-" + what + "-XXXXXX")).string();
    if (mkdtemp(form.data()) == nullptr)
      return error(Code::io_error, "cannot create a folder in {}: {}; TMPDIR names another",
                   root.string(), std::strerror(errno));
    return TempFolder(form);
  }
  ~TempFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(TempFolder&& o) noexcept : path_(std::exchange(o.path_, {})) {}
  TempFolder& operator=(TempFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TempFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace millrace::cli
