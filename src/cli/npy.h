// A matrix of f32 as NumPy reads it (numpy.load): written row by row, its header first.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace millrace::cli {

class NpyWriter {
 public:
  static Result<NpyWriter> make(const std::string& path, int64_t n_rows, int64_t n_columns);
  Status row(std::span<const float> values);
  Status finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace millrace::cli
