#!/usr/bin/env python3
"""Prints src/tensor/codec_golden.h: blocks of every format with random bits, and what the PyPI
package gguf (an implementation independent of ours) decodes them to.

    python3 -m venv venv && venv/bin/pip install gguf numpy
    venv/bin/python tools/codec_golden.py | clang-format > src/tensor/codec_golden.h
"""
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

FORMATS = "q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs".split()
N_BLOCKS = 2


def fnv1a(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return h


def finite_blocks(rng, qtype):
    while True:
        raw = rng.integers(0, 256, (N_BLOCKS, GGML_QUANT_SIZES[qtype][1]), dtype=np.uint8)
        with np.errstate(all="ignore"):
            values = quants.dequantize(raw, qtype).ravel()
        if np.isfinite(values).all():
            return raw, values


print("""// Printed by tools/codec_golden.py from the PyPI package gguf; not written by hand. Two blocks of
// random bits per format, the FNV-1a hash of the f32 values they decode to, and four of the values.
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

struct CodecGolden {
  std::string_view format, blocks;
  uint64_t hash;
  uint32_t spots[4];  // elements 0, 13, 29 of the first block and the last of the second
};

inline constexpr CodecGolden kCodecGoldens[] = {""")
rng = np.random.default_rng(20260131)
for name in FORMATS:
    raw, values = finite_blocks(rng, GGMLQuantizationType[name.upper()])
    bits = values.view(np.uint32)
    lines = "\n".join(f'"{raw.tobytes().hex()[i:i + 90]}"' for i in range(0, 2 * raw.size, 90))
    spots = ", ".join(f"0x{bits[i]:08x}" for i in (0, 13, 29, -1))
    print(f'{{"{name}",\n{lines},\n0x{fnv1a(values.tobytes()):016x}, {{{spots}}}}},')
print("};\n\n}  // namespace millrace")
