// codec_dump decode|encode TYPE: blocks on standard input become f32 on standard output, or the
// other way round. A test driver: Python compares the two sides with an independent implementation.
#include <cstdio>
#include <string_view>
#include <vector>

#include "tensor/codec.h"
#include "tensor/format.h"

namespace {

std::vector<char> read_all(FILE* in) {
  std::vector<char> out, part(1 << 16);
  while (const size_t n = std::fread(part.data(), 1, part.size(), in))
    out.insert(out.end(), part.data(), part.data() + n);
  return out;
}

std::vector<char> decoded(millrace::DType type, const std::vector<char>& blocks) {
  const auto& format = millrace::format_of(type);
  const auto elems = static_cast<int64_t>(blocks.size()) / format.block_bytes * format.block_elems;
  std::vector<char> out(static_cast<size_t>(elems) * sizeof(float));
  millrace::decode(type, blocks.data(), reinterpret_cast<float*>(out.data()), elems);
  return out;
}

std::vector<char> encoded(millrace::DType type, const std::vector<char>& values) {
  const auto elems = static_cast<int64_t>(values.size() / sizeof(float));
  std::vector<char> out(millrace::bytes_of(type, elems));
  millrace::encode(type, reinterpret_cast<const float*>(values.data()), out.data(), elems);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view way = argc == 3 ? argv[1] : "";
  const auto type = millrace::dtype_named(argc == 3 ? argv[2] : "");
  if ((way != "decode" && way != "encode") || !type) {
    std::fprintf(stderr, "usage: codec_dump decode|encode TYPE\n");
    return 2;
  }
  const auto in = read_all(stdin);
  const auto out = way == "decode" ? decoded(*type, in) : encoded(*type, in);
  return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() ? 0 : 1;
}
