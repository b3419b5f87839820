"""The options of a gate, worded once: keys of the configuration, of the command line, of pytest.

Their types are the fields of :class:`gelu_verify.config.settings.Settings`. Importing this loads
nothing, so that ``--help`` answers at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gelu_verify import operators


@dataclass(frozen=True)
class Option:
    """What an option means. default: None where ``help`` says what is done without it."""

    help: str
    default: Any = None

    @property
    def text(self) -> str:
        """The help with the default."""
        if self.default is None:
            return self.help
        shown = ",".join(self.default) if isinstance(self.default, tuple) else self.default
        return f"{self.help} [default: {shown}]"


#: Options that are lists: text with commas on a command line.
LISTS = ("formats", "devices")

OPTIONS: dict[str, Option] = {
    "operator": Option(f"What it computes: {', '.join(operators.names())}."),
    "formula": Option("Which GELU it claims: erf, tanh or sigmoid. [default: erf]"),
    "formats": Option(
        "Comma-separated: fp64, fp32, bf16, fp16, fp8_e4m3fn, fp8_e5m2. "
        "[default: what it declares, else fp32,bf16,fp16]"
    ),
    "contract": Option(
        "What it promises, strictest first: correctly_rounded, faithful, tail_accurate, "
        "saturating, cancelling, approximation. [default: what it declares, else cancelling]"
    ),
    "devices": Option(
        "Comma-separated: cpu, cuda or cuda:N; what is absent is reported.", ("cpu",)
    ),
    "sweep": Option(
        "quick, standard or exhaustive (fp32: all 2^32 inputs; two arguments of 16 bits, also a "
        "backward: all 2^32 pairs); of one argument 8 and 16 bits are always exhaustive.",
        "standard",
    ),
    "seed": Option("Seed of the sampled inputs; nightly draws one where it is 0.", 0),
    "profile": Option(
        "ci: the same inputs in every run; nightly: a fresh seed, which is printed, and more "
        "examples.",
        "ci",
    ),
    "examples": Option("Property-based examples a kernel and format. [default: 20, nightly 500]"),
    "timeout": Option("Seconds the kernel may take in a single check before it is ended.", 60.0),
    "workers": Option("Kernels checked at a time. [default: one a core]"),
    "baselines": Option("Folder of the baselines.", "reports/baselines"),
}
