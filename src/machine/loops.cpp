#include "machine/loops.h"

namespace millrace {
namespace {

// Values that no multiplier can shortcut: products and sums stay finite, normal and small.
struct alignas(64) Operands {
  uint32_t i8[16], ones[16], f32[16], bf16[16];
};

constexpr Operands make_operands() {
  Operands o{};
  for (int i = 0; i < 16; ++i) {
    o.i8[i] = 0x1b2d473fu;    // four int8 below 128: also valid as the unsigned side
    o.ones[i] = 0x00010001u;  // two int16 ones
    o.f32[i] = 0x3a83126fu;   // 0.001
    o.bf16[i] = 0x3a833a83u;
  }
  return o;
}
constexpr Operands kOperands = make_operands();

#define VECTORS                                                                            \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

#define ON_12(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#define ON_6(f) f(0, 6) f(1, 7) f(2, 8) f(3, 9) f(4, 10) f(5, 11)

// Upper halves left dirty would slow every SSE instruction after.
#define LEAVE_AVX "vzeroupper\n"

// Twelve chains: more than latency (5) times issue width (2) of any of these on known cores.
#define MAC_LOOP(name, clear, load, body, leave)                          \
  void name(int64_t n_turns) {                                            \
    asm volatile(ON_12(clear) load "1:\n" body "dec %[n]\njnz 1b\n" leave \
                 : [n] "+r"(n_turns)                                      \
                 : [o] "r"(&kOperands)                                    \
                 : "cc", "memory", VECTORS);                              \
  }

#define CLEAR_X(i) "pxor %%xmm" #i ", %%xmm" #i "\n"
#define CLEAR_Y(i) "vpxor %%ymm" #i ", %%ymm" #i ", %%ymm" #i "\n"
#define CLEAR_Z(i) "vpxord %%zmm" #i ", %%zmm" #i ", %%zmm" #i "\n"

// int8: unsigned by signed in pairs, widened by a product with one, added; stage by stage, which
// the port binding likes a percent better than chain by chain.
#define LOAD_I8_Y "vmovdqa (%[o]), %%ymm12\nvmovdqa 64(%[o]), %%ymm13\n"
#define I8_PAIRS(t, a) "vpmaddubsw %%ymm12, %%ymm12, %%ymm" #t "\n"
#define I8_QUADS(t, a) "vpmaddwd %%ymm13, %%ymm" #t ", %%ymm" #t "\n"
#define I8_ADD(t, a) "vpaddd %%ymm" #t ", %%ymm" #a ", %%ymm" #a "\n"
#define I8_Y ON_6(I8_PAIRS) ON_6(I8_QUADS) ON_6(I8_ADD)
MAC_LOOP(i8_avx2, CLEAR_Y, LOAD_I8_Y, I8_Y I8_Y, LEAVE_AVX)

#define DP_Y(i) "vpdpbusd %%ymm12, %%ymm12, %%ymm" #i "\n"
MAC_LOOP(i8_vnni256, CLEAR_Y, LOAD_I8_Y, ON_12(DP_Y), LEAVE_AVX)

#define LOAD_I8_Z "vmovdqa64 (%[o]), %%zmm12\n"
#define DP_Z(i) "vpdpbusd %%zmm12, %%zmm12, %%zmm" #i "\n"
MAC_LOOP(i8_vnni512, CLEAR_Z, LOAD_I8_Z, ON_12(DP_Z), LEAVE_AVX)

// Without AVX2 the widest int8 product is the int16 one.
#define LOAD_I8_X "movdqa 64(%[o]), %%xmm12\n"
#define I8_COPY(t, a) "movdqa %%xmm12, %%xmm" #t "\n"
#define I8_MUL(t, a) "pmaddwd %%xmm12, %%xmm" #t "\npaddd %%xmm" #t ", %%xmm" #a "\n"
#define I8_X ON_6(I8_COPY) ON_6(I8_MUL)
MAC_LOOP(i8_sse2, CLEAR_X, LOAD_I8_X, I8_X I8_X, )

#define LOAD_F32_X "movaps 128(%[o]), %%xmm12\n"
#define F32_COPY(t, a) "movaps %%xmm12, %%xmm" #t "\n"
#define F32_MUL(t, a) "mulps %%xmm12, %%xmm" #t "\naddps %%xmm" #t ", %%xmm" #a "\n"
#define F32_X ON_6(F32_COPY) ON_6(F32_MUL)
MAC_LOOP(f32_sse2, CLEAR_X, LOAD_F32_X, F32_X F32_X, )

#define LOAD_F32_Y "vmovaps 128(%[o]), %%ymm12\n"
#define FMA_Y(i) "vfmadd231ps %%ymm12, %%ymm12, %%ymm" #i "\n"
MAC_LOOP(f32_avx2, CLEAR_Y, LOAD_F32_Y, ON_12(FMA_Y), LEAVE_AVX)

#define LOAD_F32_Z "vmovaps 128(%[o]), %%zmm12\n"
#define FMA_Z(i) "vfmadd231ps %%zmm12, %%zmm12, %%zmm" #i "\n"
MAC_LOOP(f32_avx512, CLEAR_Z, LOAD_F32_Z, ON_12(FMA_Z), LEAVE_AVX)

#define LOAD_BF16_Z "vmovaps 192(%[o]), %%zmm12\n"
#define BF16_Z(i) "vdpbf16ps %%zmm12, %%zmm12, %%zmm" #i "\n"
MAC_LOOP(bf16_avx512, CLEAR_Z, LOAD_BF16_Z, ON_12(BF16_Z), LEAVE_AVX)

constexpr MacLoop kMacLoops[] = {
    {"sse2", MacType::i8, Isa::generic, 12 * 8, i8_sse2},
    {"avx2", MacType::i8, Isa::avx2, 12 * 32, i8_avx2},
    {"vnni256", MacType::i8, Isa::avx512_vnni, 12 * 32, i8_vnni256},
    {"vnni512", MacType::i8, Isa::avx512_vnni, 12 * 64, i8_vnni512},
    {"sse2", MacType::f32, Isa::generic, 12 * 4, f32_sse2},
    {"avx2", MacType::f32, Isa::avx2, 12 * 8, f32_avx2},
    {"avx512", MacType::f32, Isa::avx512, 12 * 16, f32_avx512},
    {"avx512_bf16", MacType::bf16, Isa::avx512_bf16, 12 * 32, bf16_avx512},
};

// Reading. A turn reads one line (two for the single stream) of each stream; the streams are equal
// stretches of the data. On the two-core Ice Lake machine one thread reads 12.3 GB/s in one stream,
// 14.0 in four and 15.7 in eight: the core's prefetcher works page by page, and only several pages
// at once keep enough lines under way. Software prefetch added nothing to eight streams.
#define LINE_X(offset, at)                               \
  "movaps " #offset at ", %%xmm0\nmovaps 16+" #offset at \
  ", %%xmm1\n"                                           \
  "movaps 32+" #offset at ", %%xmm2\nmovaps 48+" #offset at ", %%xmm3\n"
#define LINE_Y(offset, at) "vmovdqa " #offset at ", %%ymm0\nvmovdqa 32+" #offset at ", %%ymm1\n"
#define LINE_Z(offset, at) "vmovdqa64 " #offset at ", %%zmm0\n"

#define STREAMS_1(line) line(0, "(%[p])") line(64, "(%[p])")
#define STREAMS_4(line) \
  line(0, "(%[p])") line(0, "(%[p],%[one])") line(0, "(%[p],%[one],2)") line(0, "(%[p],%[three])")
#define STREAMS_8(line) \
  STREAMS_4(line)       \
  line(0, "(%[q])") line(0, "(%[q],%[one])") line(0, "(%[q],%[one],2)") line(0, "(%[q],%[three])")

#define READ_LOOP(name, n_streams, step, body, leave)                           \
  void name(const std::byte* data, size_t bytes) {                              \
    const size_t stretch = bytes / n_streams;                                   \
    const std::byte* end = data + stretch;                                      \
    const std::byte* fifth = data + 4 * stretch;                                \
    asm volatile("1:\n" body "add $" step ", %[p]\nadd $" step                  \
                 ", %[q]\ncmp %[end], %[p]\njb 1b\n" leave                      \
                 : [p] "+r"(data), [q] "+r"(fifth)                              \
                 : [end] "r"(end), [one] "r"(stretch), [three] "r"(3 * stretch) \
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3");             \
  }

READ_LOOP(read_sse2, 8, "64", STREAMS_8(LINE_X), )
READ_LOOP(read_avx2_1, 1, "128", STREAMS_1(LINE_Y), LEAVE_AVX)
READ_LOOP(read_avx2_4, 4, "64", STREAMS_4(LINE_Y), LEAVE_AVX)
READ_LOOP(read_avx2_8, 8, "64", STREAMS_8(LINE_Y), LEAVE_AVX)
READ_LOOP(read_avx512_8, 8, "64", STREAMS_8(LINE_Z), LEAVE_AVX)

constexpr ReadLoop kReadLoops[] = {
    {"sse2, 8 streams", Isa::generic, read_sse2},      {"avx2, 1 stream", Isa::avx2, read_avx2_1},
    {"avx2, 4 streams", Isa::avx2, read_avx2_4},       {"avx2, 8 streams", Isa::avx2, read_avx2_8},
    {"avx512, 8 streams", Isa::avx512, read_avx512_8},
};

}  // namespace

std::string_view name_of(MacType type) {
  switch (type) {
    case MacType::i8:
      return "i8";
    case MacType::f32:
      return "f32";
    case MacType::bf16:
      return "bf16";
  }
  return "unknown";
}

std::span<const MacLoop> mac_loops() {
  return kMacLoops;
}

std::span<const ReadLoop> read_loops() {
  return kReadLoops;
}

}  // namespace millrace
