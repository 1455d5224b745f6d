// The codecs of the block formats: any bytes decode, what they decode to encodes again, and what
// was encoded decodes to finite values where the input was finite and of a size fp16 scales can
// hold.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace {

using namespace millrace;

bool is_tame(const std::vector<float>& values) {
  for (const float v : values)
    if (!(std::fabs(v) < 1e4f)) return false;
  return true;
}

}  // namespace

// The first byte chooses the format, the rest are its blocks.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  constexpr int kFirst = static_cast<int>(DType::q8_0), kLast = static_cast<int>(DType::iq4_xs);
  const auto type = static_cast<DType>(kFirst + data[0] % (kLast - kFirst + 1));
  const Format& format = format_of(type);
  const auto n_blocks = static_cast<int64_t>((size - 1) / static_cast<size_t>(format.block_bytes));
  const int64_t elems = n_blocks * format.block_elems;
  if (elems == 0) return 0;
  const std::vector<uint8_t> blocks(data + 1, data + 1 + bytes_of(type, elems));
  std::vector<float> values(static_cast<size_t>(elems)), again(values.size());
  decode(type, blocks.data(), values.data(), elems);
  std::vector<uint8_t> encoded(blocks.size());
  encode(type, values.data(), encoded.data(), elems);
  decode(type, encoded.data(), again.data(), elems);
  if (!is_tame(values)) return 0;
  for (const float v : again) MILLRACE_CHECK(std::isfinite(v), "{} of {}", v, format.name);
  return 0;
}
