"""Elementwise kernels: torch in eager mode, and Triton."""

from __future__ import annotations

from gelu_verify.kernels.spec import KernelSpec, KnownIssue
from reference_kernels.registry.torch_issues import (
    AVX512,
    HALF_ARITHMETIC,
    INFINITE_SUM,
    ON_AVX512,
    SQUARE_OVERFLOWS,
    TANH_ON_CUDA,
    VECTOR_ERF,
    issues,
)

_TORCH = "reference_kernels.torch_eager"
_TRITON = "reference_kernels.triton_pointwise"
#: Checks of a fused kernel that show a fault of the activation.
_FUSED_CHECKS = ("bound", "gradient", "batch", "large")


def _torch(
    name: str,
    function: str,
    formula: str,
    summary: str,
    *issues: KnownIssue,
    operator: str = "gelu",
) -> KernelSpec:
    return KernelSpec(
        name=name,
        target=f"{_TORCH}:{function}",
        operator=operator,
        formula=formula,
        formats=("fp64", "fp32", "bf16", "fp16"),
        contract="cancelling",
        known_issues=issues,
        summary=summary,
        registered=True,
    )


def _triton(name: str, function: str, formula: str, contract: str, summary: str) -> KernelSpec:
    return KernelSpec(
        name=name,
        target=f"{_TRITON}:{function}",
        operator="gelu_backward" if function.endswith("backward") else "gelu",
        formula=formula,
        contract=contract,
        summary=summary,
        registered=True,
    )


KERNELS: tuple[KernelSpec, ...] = (
    _torch(
        "torch-erf",
        "gelu",
        "erf",
        "torch.nn.functional.gelu",
        *issues(VECTOR_ERF, "gelu", ("fp32",), ("accuracy", "routes"), ("cpu",)),
        *issues(VECTOR_ERF, "gelu_backward", ("fp32",), ("accuracy", "routes"), ("cpu",)),
        *issues(
            VECTOR_ERF,
            "gelu",
            ("fp32",),
            ("invariants",),
            ("cpu",),
            ("AVX2",),
            sweeps=("exhaustive",),
            inputs=("-0.3387873",),
            versions="==2.13.*",
        ),
        *issues(AVX512, "gelu", ("fp32",), ("special_values", "invariants"), *ON_AVX512),
        *issues(
            AVX512, "gelu", ("bf16",), ("accuracy", "special_values", "invariants"), *ON_AVX512
        ),
        *issues(AVX512, "gelu_backward", ("bf16",), ("accuracy",), *ON_AVX512),
    ),
    _torch(
        "torch-tanh",
        "gelu_tanh",
        "tanh",
        "torch.nn.functional.gelu, approximate='tanh'",
        *issues(
            TANH_ON_CUDA,
            "gelu",
            ("fp32",),
            ("accuracy",),
            ("cuda",),
            sweeps=("exhaustive",),
            versions="==2.11.*",
        ),
        *issues(
            SQUARE_OVERFLOWS,
            "gelu_backward",
            ("fp64", "fp32", "bf16"),
            ("accuracy", "special_values", "invariants"),
        ),
    ),
    _torch(
        "torch-sigmoid",
        "gelu_sigmoid",
        "sigmoid",
        "x·sigmoid(1.702x), QuickGELU",
        *issues(SQUARE_OVERFLOWS, "gelu_backward", ("fp64", "fp32"), ("accuracy", "invariants")),
        *issues(HALF_ARITHMETIC, "gelu", ("bf16", "fp16"), ("accuracy",)),
        *issues(HALF_ARITHMETIC, "gelu", ("bf16",), ("invariants",)),
        *issues(HALF_ARITHMETIC, "gelu_backward", ("bf16", "fp16"), ("accuracy", "invariants")),
    ),
    _torch(
        "torch-bias-gelu",
        "bias_gelu",
        "erf",
        "gelu(x + bias)",
        *issues(
            INFINITE_SUM,
            "bias_gelu",
            ("fp64", "fp32", "bf16", "fp16"),
            ("accuracy", "invariants"),
        ),
        *issues(VECTOR_ERF, "bias_gelu", ("fp32",), ("routes", *_FUSED_CHECKS), ("cpu",)),
        *issues(VECTOR_ERF, "bias_gelu", ("fp16",), ("bound", "batch", "large"), ("cpu",)),
        operator="bias_gelu",
    ),
    _torch(
        "torch-geglu",
        "geglu",
        "erf",
        "gelu(gate)·up",
        *issues(VECTOR_ERF, "geglu", ("fp32",), ("accuracy", "routes", *_FUSED_CHECKS), ("cpu",)),
        operator="geglu",
    ),
    _triton("triton-erf", "gelu_erf", "erf", "tail_accurate", "accurate in the tail"),
    _triton("triton-tanh", "gelu_tanh", "tanh", "tail_accurate", "as x·σ(2u), no cancellation"),
    _triton("triton-sigmoid", "gelu_sigmoid", "sigmoid", "tail_accurate", "x·σ(1.702x)"),
    _triton("triton-erf-guarded", "gelu_erf_guarded", "erf", "saturating", "|x| > 6: 0 or x"),
    _triton("triton-erf-backward", "gelu_erf_backward", "erf", "tail_accurate", "dy·GELU'(x)"),
    _triton("triton-tanh-backward", "gelu_tanh_backward", "tanh", "tail_accurate", "dy·GELU'(x)"),
    _triton(
        "triton-sigmoid-backward",
        "gelu_sigmoid_backward",
        "sigmoid",
        "tail_accurate",
        "dy·GELU'(x)",
    ),
)
