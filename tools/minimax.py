#!/usr/bin/env python3
"""Prints the polynomial coefficients of src/base/math_body.inc: Remez exchange in 60 digits for the
least relative error, then rounded to f32. Needs the PyPI package mpmath.

    python3 tools/minimax.py
"""
import struct

import mpmath as mp

mp.mp.dps = 60


def remez(target, weight, lo, hi, degree):
    """Coefficients c with weight(t) * (sum c_i t^i - target(t)) equioscillating on [lo, hi]."""
    n = degree + 2
    grid = [lo + (hi - lo) * (1 - mp.cos(mp.pi * i / 2000)) / 2 for i in range(2001)]
    points = [grid[2000 * i // (n - 1)] for i in range(n)]
    for _ in range(30):
        rows = [[t**j for j in range(degree + 1)] + [(-1) ** i / weight(t)] for i, t in enumerate(points)]
        c = list(mp.lu_solve(mp.matrix(rows), mp.matrix([target(t) for t in points])))[:-1]
        errors = [weight(t) * (mp.polyval(c[::-1], t) - target(t)) for t in grid]
        best, sign = [], 0
        for t, e in zip(grid, errors):  # one extremum per run of equal sign
            if mp.sign(e) != sign:
                best.append((abs(e), t))
                sign = mp.sign(e)
            elif abs(e) > best[-1][0]:
                best[-1] = (abs(e), t)
        while len(best) > n:
            best.pop(0 if best[0][0] < best[-1][0] else -1)
        if len(best) < n:
            break
        points = [t for _, t in best]
    return c, max(abs(e) for e in errors)


def f32(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def literal(x):
    digits, exponent = x.hex().split("p")
    return f"{digits.rstrip('0')}p{exponent}f"


def show(name, target, weight, lo, hi, degree):
    tiny = mp.mpf("1e-12")
    c, error = remez(target, weight, mp.mpf(lo) or tiny, mp.mpf(hi), degree)
    print(f"{name}: relative error 2^{float(mp.log(error, 2)):.1f}")
    print("  ", ", ".join(literal(f32(x)) for x in c))


def off_zero(f):
    return lambda t: f(t if abs(t) > mp.mpf("1e-15") else mp.mpf("1e-15"))


def split(name, x, keep):
    """x as a sum of f32: the first parts with `keep` bits, so that small integers times them are exact."""
    parts = []
    for bits in keep:
        scale = mp.mpf(2) ** (bits - 1 - mp.floor(mp.log(abs(x), 2)))
        parts.append(mp.nint(x * scale) / scale)
        x -= parts[-1]
    print(f"{name}:", ", ".join(literal(float(p)) for p in parts))


half_ln2 = mp.log(2) / 2 * mp.mpf("1.001")
show("exp: (e^r - 1 - r) / r^2", off_zero(lambda r: (mp.exp(r) - 1 - r) / r**2),
     lambda r: r**2 / mp.exp(r) + mp.mpf("1e-20"), -half_ln2, half_ln2, 4)
show("sin: (sin r / r - 1) / z, z = r^2", off_zero(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z),
     lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)) + mp.mpf("1e-20"), 0, 1, 3)
show("cos: (cos r - 1 + z / 2) / z^2", off_zero(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2),
     lambda z: z**2 / mp.cos(mp.sqrt(z)) + mp.mpf("1e-20"), 0, 1, 2)
show("log: (log(1 + f) - f + f^2 / 2) / f^3", off_zero(lambda f: (mp.log(1 + f) - f + f**2 / 2) / f**3),
     off_zero(lambda f: abs(f**3 / mp.log(1 + f))), mp.sqrt(0.5) - 1, mp.sqrt(2) - 1, 8)
split("ln 2", mp.log(2), (15, 24))
split("pi / 2", mp.pi / 2, (24, 24, 24))
split("log2 e", 1 / mp.log(2), (24,))
split("2 / pi", 2 / mp.pi, (24,))
