#include "files/gguf_write.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>

#include "tensor/format.h"

namespace millrace {
namespace {

constexpr size_t kAlignment = 32;  // the format's default

size_t aligned(size_t n) {
  return (n + kAlignment - 1) / kAlignment * kAlignment;
}

void append_string(std::string& out, std::string_view text) {
  const uint64_t length = text.size();
  out.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(text);
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// The entry of a directory is on disk only when the directory is.
void sync_directory_of(const std::string& path) {
  const auto folder = std::filesystem::absolute(path).parent_path();
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

}  // namespace

int64_t TensorPlan::n_rows() const {
  return std::accumulate(shape.begin(), shape.end() - 1, int64_t{1}, std::multiplies<>());
}

size_t TensorPlan::row_bytes() const {
  return bytes_of(type, shape.back());
}

GgufWriter::~GgufWriter() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) (void)unlink(temporary_.c_str());
}

void GgufWriter::add_key(std::string_view key, GgufType type) {
  ++n_keys_;
  append_string(meta_, key);
  append(meta_, static_cast<uint32_t>(type));
}

void GgufWriter::add_array(std::string_view key, GgufType type, size_t count) {
  add_key(key, GgufType::array);
  append(meta_, static_cast<uint32_t>(type));
  append(meta_, static_cast<uint64_t>(count));
}

void GgufWriter::add_u32(std::string_view key, uint32_t value) {
  add_key(key, GgufType::u32);
  append(meta_, value);
}

void GgufWriter::add_f32(std::string_view key, float value) {
  add_key(key, GgufType::f32);
  append(meta_, value);
}

void GgufWriter::add_bool(std::string_view key, bool value) {
  add_key(key, GgufType::boolean);
  append(meta_, static_cast<uint8_t>(value));
}

void GgufWriter::add_string(std::string_view key, std::string_view value) {
  add_key(key, GgufType::string);
  append_string(meta_, value);
}

void GgufWriter::add_strings(std::string_view key, std::span<const std::string> values) {
  add_array(key, GgufType::string, values.size());
  for (const std::string& value : values) append_string(meta_, value);
}

void GgufWriter::add_i32s(std::string_view key, std::span<const int32_t> values) {
  add_array(key, GgufType::i32, values.size());
  for (const int32_t value : values) append(meta_, value);
}

void GgufWriter::add_f32s(std::string_view key, std::span<const float> values) {
  add_array(key, GgufType::f32, values.size());
  for (const float value : values) append(meta_, value);
}

void GgufWriter::add(const GgufValue& value) {
  if (value.is_array)
    add_array(value.key, value.type, value.count);
  else
    add_key(value.key, value.type);
  meta_.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

void GgufWriter::add_tensor(TensorPlan tensor) {
  MILLRACE_CHECK(!tensor.shape.empty() && gguf_id_of(tensor.type), "{} cannot be written",
                 tensor.name);
  tensors_.push_back(std::move(tensor));
}

size_t GgufWriter::data_bytes() const {
  return std::accumulate(tensors_.begin(), tensors_.end(), size_t{0},
                         [](size_t sum, const TensorPlan& t) { return sum + t.bytes(); });
}

std::string GgufWriter::header() const {
  std::string out = "GGUF";
  append(out, uint32_t{3});
  append(out, static_cast<uint64_t>(tensors_.size()));
  append(out, n_keys_);
  out += meta_;
  uint64_t offset = 0;
  for (const TensorPlan& tensor : tensors_) {
    append_string(out, tensor.name);
    append(out, static_cast<uint32_t>(tensor.shape.size()));
    for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim) append(out, *dim);
    append(out, *gguf_id_of(tensor.type));
    append(out, offset);
    offset += aligned(tensor.bytes());
  }
  return out;
}

Status GgufWriter::failed(std::string_view what) const {
  return error(Code::io_error, "cannot {} {}: {}", what, path_, std::strerror(errno));
}

Status GgufWriter::begin(const std::string& path) {
  path_ = path;
  const std::string temporary = fmt::format("{}.partial-{}", path, getpid());
  fd_ = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) return failed("create");
  temporary_ = temporary;
  const std::string bytes = header();
  MILLRACE_TRY(put_bytes(bytes.data(), bytes.size()));
  return pad();
}

Status GgufWriter::put_bytes(const void* bytes, size_t n) {
  const auto* p = static_cast<const char*>(bytes);
  at_ += n;
  while (n > 0) {
    const ssize_t done = ::write(fd_, p, n);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failed("write");
    p += done;
    n -= static_cast<size_t>(done);
  }
  return {};
}

Status GgufWriter::pad() {
  static constexpr char kZeros[kAlignment] = {};
  return put_bytes(kZeros, aligned(at_) - at_);
}

Status GgufWriter::write(std::span<const std::byte> bytes) {
  MILLRACE_CHECK(tensor_ < tensors_.size(), "data after the last tensor");
  const size_t whole = tensors_[tensor_].bytes();
  MILLRACE_CHECK(bytes.size() <= whole - written_, "data beyond {}", tensors_[tensor_].name);
  MILLRACE_TRY(put_bytes(bytes.data(), bytes.size()));
  written_ += bytes.size();
  if (written_ < whole) return {};
  ++tensor_;
  written_ = 0;
  return pad();
}

Status GgufWriter::finish() {
  MILLRACE_CHECK(tensor_ == tensors_.size(), "{} of {} tensors written", tensor_, tensors_.size());
  if (fsync(fd_) != 0) return failed("write");
  const int fd = std::exchange(fd_, -1);
  if (close(fd) != 0) return failed("write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("rename to");
  temporary_.clear();
  sync_directory_of(path_);
  return {};
}

}  // namespace millrace
