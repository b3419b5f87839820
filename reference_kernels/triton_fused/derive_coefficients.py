"""Derive, or check, the polynomial of `activation.py` with mpmath.

    python -m reference_kernels.triton_fused.derive_coefficients

2R(a) = log2(exp(a²/2)·Φ(-a)) on [0, 13.75], a polynomial in t = a - 2 of degree 13. Its error is
weighted by Φ(-a) + 2^-8: an error of 2^-24 after weighting is one of |x|·2^-24 in GELU near 0, as
fp32 rounding leaves, and one of 2^-16 of the value in the tail.
"""

from __future__ import annotations

import re
from pathlib import Path

import mpmath as mp
import numpy as np

from reference_kernels.triton_pointwise.derive_coefficients import fit_fp32, mills

_DEGREE, _CENTRE, _TOP = 13, 2.0, 13.75


def main() -> int:
    """Print the coefficients with their error; 1 if activation.py lacks one of them."""
    values, error = fit_fp32(
        lambda t: mp.log(mills(t + _CENTRE), 2),
        lambda t: mp.ncdf(-(t + _CENTRE)) + mp.mpf(2) ** -8,
        _DEGREE,
        -_CENTRE,
        _TOP - _CENTRE,
    )
    text = Path(__file__).with_name("activation.py").read_text(encoding="utf-8")
    present = {np.float32(number) for number in re.findall(r"\d+\.\d+(?:e-?\d+)?", text)}
    print(f"2R error 2^{float(mp.log(error, 2)):.2f}")
    missing = False
    for value in (twice / 2 for twice in values):
        print(f"    {np.float32(float(value))!s}")
        missing |= np.abs(np.float32(float(value))) not in present
    print("activation.py lacks some" if missing else "activation.py agrees")
    return int(missing)


if __name__ == "__main__":
    raise SystemExit(main())
