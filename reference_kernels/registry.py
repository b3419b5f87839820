"""The kernels that ship, what they claim and promise. Importing this loads no framework."""

from __future__ import annotations

from gelu_verify.kernels.spec import KernelSpec, KnownIssue
from gelu_verify.operators import fused

_TORCH = "reference_kernels.torch_eager"
_TRITON = "reference_kernels.triton_pointwise"


def _torch(name: str, function: str, formula: str, summary: str, *issues: KnownIssue) -> KernelSpec:
    return KernelSpec(
        name=name,
        target=f"{_TORCH}:{function}",
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


_VECTOR_ERF = (
    "https://github.com/pytorch/pytorch/issues/198183",
    "the vector erf of x86 CPUs is bounded in absolute, not in relative error",
)
_ONEDNN_ERF = (
    "https://github.com/uxlfoundation/oneDNN/issues/1122",
    "oneDNN's erf is bounded in absolute, not in relative error",
)
_AVX512 = (
    "https://github.com/pytorch/pytorch/issues/185770",
    "oneDNN with AVX-512: NaN at +inf, inf from 2^127 on, subnormals flushed in bf16",
)
#: Devices and instruction sets of the above.
_ON_AVX512 = (("cpu",), ("AVX512",))
#: Not reported for torch itself; this is the public report of the same fault.
_SQUARE_OVERFLOWS = (
    "https://github.com/facebookresearch/fairseq/issues/2235",
    "x² (or dy·x) overflows and meets a factor of 0: the gradient is NaN where it should be 0 or 1",
)
_HALF_ARITHMETIC = (
    "https://github.com/microsoft/onnxruntime/pull/11885",
    "1.702·x is rounded to 16 bits before the exponential, which amplifies that error by |x|",
)


def _issues(
    report: tuple[str, str],
    operator: str,
    formats: tuple[str, ...],
    checks: tuple[str, ...],
    devices: tuple[str, ...] = ("cpu", "cuda"),
    instruction_sets: tuple[str, ...] = (),
) -> tuple[KnownIssue, ...]:
    """Return one known issue a check, for torch as it is known to behave."""
    link, summary = report
    return tuple(
        KnownIssue(
            check=check,
            operator=operator,
            formats=formats,
            link=link,
            summary=summary,
            versions=">=2.11,<2.15",
            devices=devices,
            instruction_sets=instruction_sets,
        )
        for check in checks
    )


def _fused(
    name: str,
    target: str,
    operator: str,
    summary: str,
    formula: str = "erf",
    formats: tuple[str, ...] = ("fp32", "bf16", "fp16"),
    devices: tuple[str, ...] = ("cpu", "cuda"),
    issue: tuple[str, str] | None = None,
    shown_by: tuple[str, ...] = ("bound",),
) -> KernelSpec:
    """Return the spec of a fused kernel.

    issue: a known fault in fp32 on the CPU, shown_by: the checks that show it. Gradients that pass
    through a matrix product drown it.
    """
    return KernelSpec(
        name=name,
        target=f"reference_kernels.{target}",
        operator=operator,
        formula=formula,
        formats=formats,
        contract="cancelling",
        devices=devices,
        known_issues=_issues(issue, operator, ("fp32",), shown_by, ("cpu",)) if issue else (),
        summary=summary,
        registered=True,
    )


_LINEAR = "linear_gelu"
#: Every torch.compile of an operator costs 10 to 60 s on a CPU: two stand here for all; the others
#: are reference_kernels.torch_compiled:<operator>.
_FUSED = (
    _fused(
        "torch-linear-gelu",
        "torch_fused:linear_gelu",
        _LINEAR,
        "linear, then gelu",
        issue=_VECTOR_ERF,
    ),
    _fused(
        "torch-linear-gelu-tanh",
        "torch_fused:linear_gelu_tanh",
        _LINEAR,
        "linear, then gelu, approximate='tanh'",
        "tanh",
    ),
    _fused(
        "torch-addmm-gelu",
        "torch_fused:linear_gelu_epilogue",
        _LINEAR,
        "torch._addmm_activation, which is erf on a CPU",
        devices=("cpu",),
        issue=_ONEDNN_ERF,
    ),
    _fused(
        "torch-addmm-gelu-cuda",
        "torch_fused:linear_gelu_epilogue",
        _LINEAR,
        "torch._addmm_activation, which is tanh on CUDA",
        "tanh",
        devices=("cuda",),
    ),
    _fused(
        "torch-onednn-linear-gelu",
        "torch_onednn:linear_gelu",
        _LINEAR,
        "oneDNN's own epilogue",
        formats=("fp32",),
        devices=("cpu",),
        issue=_ONEDNN_ERF,
    ),
    _fused(
        "torch-onednn-linear-gelu-bf16",
        "torch_onednn_bf16:linear_gelu",
        _LINEAR,
        "oneDNN's own epilogue, where the CPU has bf16",
        formats=("bf16",),
        devices=("cpu",),
    ),
    _fused(
        "torch-compile-linear-gelu",
        "torch_compiled:linear_gelu",
        _LINEAR,
        "torch.compile",
        issue=_VECTOR_ERF,
    ),
    _fused(
        "torch-bias-gelu",
        "torch_fused:bias_gelu",
        "bias_gelu",
        "add, then gelu",
        issue=_VECTOR_ERF,
        shown_by=("bound", "gradient"),
    ),
    _fused(
        "torch-geglu",
        "torch_fused:geglu",
        "geglu",
        "gelu, then multiply",
        issue=_VECTOR_ERF,
        shown_by=("bound", "gradient"),
    ),
    _fused(
        "torch-layernorm-gelu",
        "torch_fused:layernorm_gelu",
        "layernorm_gelu",
        "norm, then gelu",
        issue=_VECTOR_ERF,
    ),
    _fused(
        "torch-compile-layernorm-gelu",
        "torch_compiled:layernorm_gelu",
        "layernorm_gelu",
        "torch.compile",
        issue=_VECTOR_ERF,
    ),
    _fused(
        "torch-conv-relu-pool",
        "torch_fused:conv_relu_pool",
        "conv_relu_pool",
        "conv2d, relu, max_pool2d",
    ),
    _fused("torch-attention", "torch_fused:attention", "attention", "as it is written"),
    _fused(
        "torch-sdpa", "torch_fused:attention_fused", "attention", "scaled_dot_product_attention"
    ),
    *(
        _fused(
            f"triton-{operator}{form}".replace("_", "-"),
            f"triton_fused:{operator}{form}",
            operator,
            "one kernel, rounded once",
            form.removeprefix("_") or "erf",
        )
        for operator, forms in (
            (_LINEAR, ("", "_tanh", "_sigmoid")),
            ("bias_gelu", ("", "_tanh", "_sigmoid")),
            ("geglu", ("", "_tanh", "_sigmoid")),
            ("layernorm_gelu", ("", "_tanh", "_sigmoid")),
            ("conv_relu_pool", ("",)),
            ("attention", ("",)),
        )
        for form in forms
    ),
)


KERNELS: tuple[KernelSpec, ...] = (
    _torch(
        "torch-erf",
        "gelu",
        "erf",
        "torch.nn.functional.gelu",
        *_issues(_VECTOR_ERF, "gelu", ("fp32",), ("accuracy", "routes"), ("cpu",)),
        *_issues(_VECTOR_ERF, "gelu_backward", ("fp32",), ("accuracy", "routes"), ("cpu",)),
        *_issues(_AVX512, "gelu", ("fp32",), ("special_values", "invariants"), *_ON_AVX512),
        *_issues(
            _AVX512, "gelu", ("bf16",), ("accuracy", "special_values", "invariants"), *_ON_AVX512
        ),
        *_issues(_AVX512, "gelu_backward", ("bf16",), ("accuracy",), *_ON_AVX512),
    ),
    _torch(
        "torch-tanh",
        "gelu_tanh",
        "tanh",
        "torch.nn.functional.gelu, approximate='tanh'",
        *_issues(
            _SQUARE_OVERFLOWS,
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
        *_issues(_SQUARE_OVERFLOWS, "gelu_backward", ("fp64", "fp32"), ("accuracy", "invariants")),
        *_issues(_HALF_ARITHMETIC, "gelu", ("bf16", "fp16"), ("accuracy",)),
        *_issues(_HALF_ARITHMETIC, "gelu", ("bf16",), ("invariants",)),
        *_issues(_HALF_ARITHMETIC, "gelu_backward", ("bf16", "fp16"), ("accuracy", "invariants")),
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
    *(spec for spec in _FUSED if spec.operator in fused.NAMES),
)
