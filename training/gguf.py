"""Reads GGUF files: metadata, and tensors as float32. Knows the types our two files use: F32, F16, Q4_1, Q8_0."""
import struct

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
ALIGNMENT = 32


def dequantise_q4_1(raw):
    blocks = raw.reshape(-1, 20)
    scale = blocks[:, 0:2].copy().view("<f2").astype(np.float32)
    least = blocks[:, 2:4].copy().view("<f2").astype(np.float32)
    packed = blocks[:, 4:]
    return np.concatenate([packed & 15, packed >> 4], axis=1) * scale + least


def dequantise_q8_0(raw):
    blocks = raw.reshape(-1, 34)
    return blocks[:, 2:].view(np.int8) * blocks[:, 0:2].copy().view("<f2").astype(np.float32)


# type number: (values in a block, bytes of a block, how the bytes become floats)
TYPES = {
    0: (1, 4, lambda raw: raw.view("<f4")),
    1: (1, 2, lambda raw: raw.view("<f2").astype(np.float32)),
    3: (32, 20, dequantise_q4_1),
    8: (32, 34, dequantise_q8_0),
}


class Gguf:
    """`metadata` maps keys to values; `tensor(name)` gives a float32 array, rows first."""

    def __init__(self, path):
        self.data = np.memmap(path, dtype=np.uint8, mode="r")
        self.at = 0
        magic, version, n_tensors, n_keys = struct.unpack("<4sIQQ", self._bytes(24))
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"{path}: not a GGUF file of version 2 or 3")
        self.metadata = {}
        for _ in range(n_keys):
            key = self._string()
            self.metadata[key] = self._value(self._scalar(4))
        self.tensors = {}
        for _ in range(n_tensors):
            name = self._string()
            shape = [self._scalar(10) for _ in range(self._scalar(4))][::-1]
            self.tensors[name] = (shape, self._scalar(4), self._scalar(10))
        alignment = self.metadata.get("general.alignment", ALIGNMENT)
        self.start = -(-self.at // alignment) * alignment

    def tensor(self, name):
        shape, type_number, offset = self.tensors[name]
        if type_number not in TYPES:
            raise ValueError(f"{name}: tensor type {type_number} is not read here")
        per_block, block_bytes, dequantise = TYPES[type_number]
        begin = self.start + offset
        raw = np.array(self.data[begin:begin + int(np.prod(shape)) // per_block * block_bytes])
        return np.ascontiguousarray(dequantise(raw), dtype=np.float32).reshape(shape)

    def _bytes(self, count):
        self.at += count
        return self.data[self.at - count:self.at].tobytes()

    def _scalar(self, kind):
        code = SCALARS[kind]
        return struct.unpack(code, self._bytes(struct.calcsize(code)))[0]

    def _string(self):
        return self._bytes(self._scalar(10)).decode()

    def _value(self, kind):
        if kind == STRING:
            return self._string()
        if kind != ARRAY:
            return self._scalar(kind)
        kind, count = self._scalar(4), self._scalar(10)
        return [self._value(kind) for _ in range(count)]
