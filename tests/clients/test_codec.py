"""Our block codecs against the `gguf` package, which knows the formats independently of us."""

import os
import subprocess

import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

TYPES = "Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS".split()
N_BLOCKS = 2048
SEED = 20260131


def codec(way, name, data):
    driver = os.environ["MILLRACE_CODEC_DUMP"]
    return subprocess.run([driver, way, name.lower()], input=data, stdout=subprocess.PIPE, check=True).stdout


def theirs(name, blocks):
    with np.errstate(invalid="ignore", over="ignore"):
        return quants.dequantize(blocks, GGMLQuantizationType[name])


@pytest.mark.parametrize("name", TYPES)
def test_decode_gives_the_same_values(name):
    """Any bytes are valid blocks: random ones hold every scale, NaN and Inf among them."""
    _, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    blocks = np.random.default_rng(SEED).integers(0, 256, (N_BLOCKS, block_bytes), dtype=np.uint8)
    ours = np.frombuffer(codec("decode", name, blocks.tobytes()), np.float32)
    np.testing.assert_array_equal(ours, theirs(name, blocks).ravel())


@pytest.mark.parametrize("name", TYPES)
def test_encode_is_understood(name):
    """What we encode, they decode to within one step of a symmetric code: the digit in the name is its
    bits. 1 % more for the scale, which is rounded to f16."""
    elems, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    values = np.random.default_rng(SEED).normal(size=(N_BLOCKS, elems)).astype(np.float32)
    blocks = np.frombuffer(codec("encode", name, values.tobytes()), np.uint8).reshape(-1, block_bytes)
    n_bits = int(name.lstrip("IQ")[0])
    step = np.abs(values).max(axis=1) * 2.0 ** (1 - n_bits)
    error = np.abs(theirs(name, blocks) - values).max(axis=1)
    assert (error <= 1.01 * step).all()
