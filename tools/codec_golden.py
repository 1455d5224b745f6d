#!/usr/bin/env python3
"""Prints tests/golden/codec.txt: blocks of every format with random bits, and what the PyPI package
gguf (an implementation independent of ours) decodes them to. A line each: the format, two blocks in
hex, the FNV-1a hash of the f32 values they decode to, and four of the values as bits: elements 0, 13
and 29 of the first block and the last of the second.

    python3 -m venv venv && venv/bin/pip install gguf numpy
    venv/bin/python tools/codec_golden.py > tests/golden/codec.txt
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


rng = np.random.default_rng(20260131)
for name in FORMATS:
    raw, values = finite_blocks(rng, GGMLQuantizationType[name.upper()])
    bits = values.view(np.uint32)
    spots = " ".join(f"{bits[i]:08x}" for i in (0, 13, 29, -1))
    print(name, raw.tobytes().hex(), f"{fnv1a(values.tobytes()):016x}", spots)
