"""Kernels in C++ and CUDA, registered as torch operators and built when first used."""

from __future__ import annotations

from gelu_verify.kernels.spec import KernelSpec

_PACKAGE = "reference_kernels.cpp"


def _cpp(name: str, function: str, operator: str, summary: str, **claims: object) -> KernelSpec:
    return KernelSpec.model_validate(
        {
            "name": name,
            "target": f"torch.ops.gelu_verify_kernels.{function}",
            "imports": f"{_PACKAGE}.cpu",
            "operator": operator,
            "devices": ("cpu",),
            "summary": summary,
            "registered": True,
            **claims,
        }
    )


_ALL_FORMATS = ("fp64", "fp32", "bf16", "fp16")
KERNELS: tuple[KernelSpec, ...] = (
    _cpp(
        "cpp-erf",
        "gelu_erf",
        "gelu",
        "in float64, rounded once",
        formats=_ALL_FORMATS,
        contract="tail_accurate",
    ),
    _cpp(
        "cpp-erf-backward",
        "gelu_erf_backward",
        "gelu_backward",
        "dy·GELU'(x) in float64, rounded once",
        formats=_ALL_FORMATS,
        contract="tail_accurate",
    ),
    _cpp(
        "cpp-linear-gelu",
        "linear_gelu",
        "linear_gelu",
        "tiles of fp32 sums, finished in the cache",
    ),
    _cpp(
        "cuda-linear-gelu",
        "linear_gelu",
        "linear_gelu",
        "GEMM into a workspace, then bias and erfcf",
        imports=f"{_PACKAGE}.cuda",
        devices=("cuda",),
    ),
)
