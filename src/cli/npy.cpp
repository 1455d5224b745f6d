#include "cli/npy.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace millrace::cli {
namespace {

constexpr size_t kAlign = 64;  // of the header, which NumPy asks for

std::string header_of(int64_t n_rows, int64_t n_columns) {
  std::string text = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}",
                                 n_rows, n_columns);
  const size_t before = 10;  // magic, version, length
  text.append(kAlign - (before + text.size() + 1) % kAlign, ' ').push_back('\n');
  std::string out("\x93NUMPY\x01\x00", 8);
  out.push_back(static_cast<char>(text.size() & 0xff));
  out.push_back(static_cast<char>(text.size() >> 8));
  return out + text;
}

Status failed(const std::string& path) {
  return error(Code::io_error, "cannot write {}: {}", path, std::strerror(errno));
}

}  // namespace

Result<NpyWriter> NpyWriter::make(const std::string& path, int64_t n_rows, int64_t n_columns) {
  NpyWriter out;
  out.path_ = path;
  out.file_.reset(std::fopen(path.c_str(), "wb"));
  if (out.file_ == nullptr) return failed(path);
  const std::string header = header_of(n_rows, n_columns);
  if (std::fwrite(header.data(), 1, header.size(), out.file_.get()) != header.size())
    return failed(path);
  return out;
}

Status NpyWriter::row(std::span<const float> values) {
  const size_t n = std::fwrite(values.data(), sizeof(float), values.size(), file_.get());
  return n == values.size() ? Status() : failed(path_);
}

Status NpyWriter::finish() {
  return std::fclose(file_.release()) == 0 ? Status() : failed(path_);
}

}  // namespace millrace::cli
