// The small floats, as bits: fp16, bf16, the OCP formats fp8 e4m3 and e5m2, e2m1 (the elements of
// MXFP4) and e8m0 (its scales). To f32 is exact; from f32 rounds to nearest, ties to even. What
// does not fit: fp16, bf16 and e5m2 give Inf; e4m3, which has no Inf, gives NaN, or its largest
// value through the saturating form; e2m1, which has neither, always saturates, and NaN gives +6.
// NaN otherwise stays NaN, with its sign and the top of its payload, and quiet.
#pragma once

#include <bit>
#include <cstdint>

namespace millrace {
namespace small_float {

enum class Top { ieee, one_nan, finite };  // what the largest exponent means: e4m3 is one_nan

struct Spec {
  int exponent_bits, mantissa_bits;
  Top top = Top::ieee;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint32_t sign() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr uint32_t infinity() const { return sign() - (1u << mantissa_bits); }  // if ieee
  constexpr uint32_t largest() const {
    return top == Top::ieee ? infinity() - 1 : top == Top::one_nan ? sign() - 2 : sign() - 1;
  }
  constexpr uint32_t overflow() const { return top == Top::finite ? largest() : largest() + 1; }
};

inline constexpr Spec kF16 = {5, 10}, kBf16 = {8, 7}, kE5m2 = {5, 2};
inline constexpr Spec kE4m3 = {4, 3, Top::one_nan}, kE2m1 = {2, 1, Top::finite};

// bits / 2^shift, to nearest even.
constexpr uint32_t round_shift(uint32_t bits, int shift) {
  return (bits + (1u << (shift - 1)) - 1 + ((bits >> shift) & 1)) >> shift;
}

constexpr float make(uint32_t sign, uint32_t magnitude) {
  return std::bit_cast<float>((sign << 31) | magnitude);
}

template <Spec s>
constexpr float decode(uint32_t code) {
  const uint32_t sign = code / s.sign() & 1, magnitude = code & (s.sign() - 1);
  const int shift = 23 - s.mantissa_bits;
  if constexpr (s.exponent_bits == 8) return make(sign, magnitude << shift);
  if (s.top != Top::finite && magnitude > s.largest()) {
    if (s.top == Top::ieee && magnitude == s.infinity()) return make(sign, 0x7f800000u);
    return make(sign, 0x7fc00000u | ((magnitude << shift) & 0x003fffffu));
  }
  if (magnitude >= 1u << s.mantissa_bits)
    return make(sign, (magnitude << shift) + (uint32_t(127 - s.bias()) << 23));
  // Subnormal: an integer times 2^(1 - bias - mantissa bits).
  const float unit = make(0, uint32_t(128 - s.bias() - s.mantissa_bits) << 23);
  return make(sign, std::bit_cast<uint32_t>(static_cast<float>(magnitude) * unit));
}

template <Spec s>
constexpr uint32_t encode_nan(uint32_t magnitude) {
  if (s.top != Top::ieee) return s.overflow();
  const uint32_t quiet = 1u << (s.mantissa_bits - 1);
  return s.infinity() | quiet | ((magnitude >> (23 - s.mantissa_bits)) & (quiet - 1));
}

template <Spec s>
constexpr uint32_t encode_magnitude(uint32_t magnitude) {
  const int shift = 23 - s.mantissa_bits;
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + s.bias();
  if (s.exponent_bits == 8) return round_shift(magnitude, shift);
  if (exponent >= 1) return round_shift(magnitude - (uint32_t(127 - s.bias()) << 23), shift);
  // Subnormal: shift the whole significand down. Past 24 places nothing can round up to a unit.
  const int places = shift + 1 - exponent;
  return places > 24 ? 0 : round_shift((magnitude & 0x7fffffu) | 0x800000u, places);
}

template <Spec s>
constexpr uint32_t encode(float value, bool saturate = false) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 31 ? s.sign() : 0, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return s.top == Top::finite ? s.largest() : sign | encode_nan<s>(magnitude);
  const uint32_t code = encode_magnitude<s>(magnitude);
  if (code <= s.largest()) return sign | code;
  return sign | (saturate ? s.largest() : s.overflow());
}

}  // namespace small_float

constexpr float bf16_to_f32(uint16_t bits) {  // the upper half of an f32, signalling NaN and all
  return small_float::decode<small_float::kBf16>(bits);
}
constexpr uint16_t f32_to_bf16(float value) {
  return static_cast<uint16_t>(small_float::encode<small_float::kBf16>(value));
}

constexpr float f16_to_f32(uint16_t bits) {  // as the instruction vcvtph2ps
  return small_float::decode<small_float::kF16>(bits);
}
constexpr uint16_t f32_to_f16(float value) {  // as the instruction vcvtps2ph
  return static_cast<uint16_t>(small_float::encode<small_float::kF16>(value));
}

constexpr float e5m2_to_f32(uint8_t bits) {
  return small_float::decode<small_float::kE5m2>(bits);
}
constexpr uint8_t f32_to_e5m2(float value) {
  return static_cast<uint8_t>(small_float::encode<small_float::kE5m2>(value));
}

constexpr float e4m3_to_f32(uint8_t bits) {
  return small_float::decode<small_float::kE4m3>(bits);
}
constexpr uint8_t f32_to_e4m3(float value) {
  return static_cast<uint8_t>(small_float::encode<small_float::kE4m3>(value));
}
constexpr uint8_t f32_to_e4m3_saturating(float value) {  // Inf gives +-448, NaN stays NaN
  return static_cast<uint8_t>(small_float::encode<small_float::kE4m3>(value, true));
}

constexpr float e2m1_to_f32(uint8_t bits) {  // the low four bits
  return small_float::decode<small_float::kE2m1>(bits & 15u);
}
constexpr uint8_t f32_to_e2m1(float value) {
  return static_cast<uint8_t>(small_float::encode<small_float::kE2m1>(value));
}

// e8m0 is a power of two from 2^-127 (code 0) to 2^127, or NaN (255); it has no sign and no zero.
constexpr float e8m0_to_f32(uint8_t bits) {
  if (bits == 255) return small_float::make(0, 0x7fc00000u);
  return small_float::make(0, bits == 0 ? 0x00400000u : uint32_t{bits} << 23);
}

// The nearest power of two, a tie (1.5 * 2^n) to the even code; 0 and what is smaller than 2^-127
// give 2^-127, what is larger 2^127; a negative number, Inf and NaN give NaN.
constexpr uint8_t f32_to_e8m0(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (bits == 0x80000000u) return 0;
  if (bits >= 0x7f800000u) return 255;
  if (bits < 0x00800000u) return bits > 0x00600000u;
  const uint32_t code = small_float::round_shift(bits, 23);
  return static_cast<uint8_t>(code < 254 ? code : 254);
}

}  // namespace millrace
