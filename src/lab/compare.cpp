#include "lab/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/small_float.h"
#include "tensor/format.h"

namespace millrace::lab {
namespace {

double load(DType type, const std::byte* data, int64_t i) {
  const auto at = [&]<class T>(T) {
    T value;
    std::memcpy(&value, data + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    return value;
  };
  switch (type) {
    case DType::f32:
      return at(0.0f);
    case DType::f16:
      return f16_to_f32(at(uint16_t{}));
    case DType::bf16:
      return bf16_to_f32(at(uint16_t{}));
    case DType::i32:
      return at(int32_t{});
    case DType::i8:
      return at(int8_t{});
    default:
      return at(uint8_t{});
  }
}

bool same_kind(double got, double want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (std::isinf(got) || std::isinf(want)) return got == want;
  return true;
}

// One unit in the last place at a value, as far as the type has denormals; none of an integer.
double last_place(DType type, double value) {
  struct Float {
    int bits, least;  // of the significand; the exponent of the smallest denormal
  };
  const Float f = type == DType::f32    ? Float{24, -149}
                  : type == DType::f16  ? Float{11, -24}
                  : type == DType::bf16 ? Float{8, -133}
                                        : Float{0, 0};
  if (f.bits == 0) return 0;
  const int exponent = value == 0 ? f.least : std::ilogb(value) - (f.bits - 1);
  return std::ldexp(1.0, std::max(exponent, f.least));
}

}  // namespace

Status compare(const Port& port, const std::byte* got, const std::byte* want,
               const Tolerance& tolerance, std::span<const double> magnitudes) {
  if (is_block_format(port.type)) {
    if (std::equal(got, got + bytes_of(port), want)) return {};
    return error(Code::wrong_result, "port {}: blocks differ", port.name);
  }
  double worst = -1, worst_bound = 0;
  int64_t worst_at = 0;
  for (int64_t i = 0; i < port.elems; ++i) {
    const double g = load(port.type, got, i), w = load(port.type, want, i);
    if (!same_kind(g, w))
      return error(Code::wrong_result, "port {}[{}]: got {}, want {}", port.name, i, g, w);
    if (std::isnan(g) || std::isinf(g)) continue;
    const double scale = magnitudes.empty() ? std::fabs(w) : magnitudes[static_cast<size_t>(i)];
    const double bound =
        tolerance.exact ? 0 : tolerance.eps * scale + tolerance.abs + last_place(port.type, w);
    const double excess = std::fabs(g - w) - bound;
    if (std::isnan(excess))
      return error(Code::wrong_result, "port {}[{}]: the allowed difference is NaN", port.name, i);
    if (excess > 0 && excess > worst) {
      worst = excess;
      worst_at = i;
      worst_bound = bound;
    }
  }
  if (worst < 0) return {};
  return error(Code::wrong_result,
               "port {}[{}]: got {:.9g}, want {:.9g}, allowed difference {:.3g}", port.name,
               worst_at, load(port.type, got, worst_at), load(port.type, want, worst_at),
               worst_bound);
}

}  // namespace millrace::lab
