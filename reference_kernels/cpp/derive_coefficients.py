"""Write, or check, ``csrc/coefficients.h`` with mpmath.

    python -m reference_kernels.cpp.derive_coefficients [--write]

The numbers are those of ``gelu_verify.reference.coefficients`` (Shepherd and Laframboise, 1981),
rounded once to float64 from 60 digits and written as hexadecimal literals, which lose nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gelu_verify.reference import coefficients

HEADER = Path(__file__).with_name("csrc") / "coefficients.h"


def main(arguments: list[str]) -> int:
    """Write the header, or return 1 if it differs from what mpmath gives."""
    if arguments == ["--write"]:
        HEADER.write_text(header(), encoding="utf-8")
        return 0
    agrees = HEADER.read_text(encoding="utf-8") == header()
    print("coefficients.h agrees" if agrees else "coefficients.h differs: run with --write")
    return int(not agrees)


def header() -> str:
    """Return the text of the header."""
    exact = coefficients.erf_coefficients()
    return "\n".join(
        [
            "// Written by reference_kernels/cpp/derive_coefficients.py; with s = 2a/(a + CENTRE),",
            "// t = s - 1:  exp(a^2/2)*Phi(-a)*(1 + GROWTH*a) = 1/2 + s*TAIL(t)",
            "//             exp(a^2/2)*GELU'(-a)/(1 - a/ZERO) = 1/2 + s*SLOPE(t)",
            "#pragma once",
            f"constexpr double CENTRE = {coefficients.MAP_CENTRE};",
            f"constexpr double GROWTH = {coefficients.TAIL_GROWTH};",
            f"constexpr double ZERO_HIGH = {exact.zero_hi.hex()};",
            f"constexpr double ZERO_LOW = {exact.zero_lo.hex()};",
            _table("TAIL", exact.tail),
            _table("SLOPE", exact.slope),
            "",
        ]
    )


def _table(name: str, values: tuple[float, ...]) -> str:
    rows = "".join(f"    {value.hex()},\n" for value in values)
    return f"constexpr double {name}[] = {{\n{rows}}};"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
