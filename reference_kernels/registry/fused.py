"""Kernels of fused operators."""

from __future__ import annotations

from gelu_verify.kernels.spec import KernelSpec, KnownIssue
from reference_kernels.registry.torch_issues import (
    CONV_16_BIT,
    CONV_BIAS_APART,
    CUBLAS_PARTIAL_SUMS,
    LAYERNORM_16_BIT,
    ON_AVX2,
    ON_CUDA,
    ONEDNN_ERF,
    SQUARE_OVERFLOWS,
    TF32_CONVOLUTION,
    UNFUSED_BIAS,
    VECTOR_ERF,
    issues,
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
    others: tuple[KnownIssue, ...] = (),
    issue_formats: tuple[str, ...] = ("fp32",),
) -> KernelSpec:
    """Return the spec of a fused kernel.

    issue: a known fault on the CPU, in issue_formats; shown_by: the checks that show it. Gradients
    that pass through a matrix product drown that of the vector erf.
    """
    return KernelSpec(
        name=name,
        target=f"reference_kernels.{target}",
        operator=operator,
        formula=formula,
        formats=formats,
        contract="cancelling",
        devices=devices,
        known_issues=(
            *(issues(issue, operator, issue_formats, shown_by, ("cpu",)) if issue else ()),
            *others,
        ),
        summary=summary,
        registered=True,
    )


_LINEAR = "linear_gelu"
_ALONE = ("bound", "batch", "large", "identity")
_UNFUSED = issues(UNFUSED_BIAS, _LINEAR, ("bf16", "fp16"), ("bound", "gradient"), *ON_AVX2)
_SPLIT_SUMS = issues(CUBLAS_PARTIAL_SUMS, _LINEAR, ("bf16",), ("batch", "fingerprint"), *ON_CUDA)
_UNFUSED_ON_CUDA = issues(UNFUSED_BIAS, _LINEAR, ("bf16",), ("bound", "gradient"), *ON_CUDA)
_FP16_ON_CUDA = (
    *issues(UNFUSED_BIAS, _LINEAR, ("fp16",), ("bound", "gradient"), *ON_CUDA),
    *issues(CUBLAS_PARTIAL_SUMS, _LINEAR, ("fp16",), ("fingerprint",), *ON_CUDA),
)
_CONV_ON_CUDA = (
    *issues(TF32_CONVOLUTION, "conv_relu_pool", ("fp32",), ("bound", "gradient"), *ON_CUDA),
    *issues(
        CONV_BIAS_APART,
        "conv_relu_pool",
        ("bf16", "fp16"),
        ("bound", "batch", "large"),
        *ON_CUDA,
    ),
    *issues(CONV_BIAS_APART, "conv_relu_pool", ("bf16",), ("gradient",), *ON_CUDA),
)
#: Every torch.compile of an operator costs 10 to 60 s on a CPU: two stand here for all; the others
#: are reference_kernels.torch_compiled:<operator>.
KERNELS: tuple[KernelSpec, ...] = (
    _fused(
        "torch-linear-gelu",
        "torch_fused:linear_gelu",
        _LINEAR,
        "linear, then gelu",
        issue=VECTOR_ERF,
        shown_by=_ALONE,
        others=(*_UNFUSED, *_UNFUSED_ON_CUDA, *_SPLIT_SUMS, *_FP16_ON_CUDA),
    ),
    _fused(
        "torch-linear-gelu-tanh",
        "torch_fused:linear_gelu_tanh",
        _LINEAR,
        "linear, then gelu, approximate='tanh'",
        "tanh",
        issue=SQUARE_OVERFLOWS,
        issue_formats=("fp32", "bf16"),
        shown_by=("gradient",),
        others=(
            *_UNFUSED,
            *issues(SQUARE_OVERFLOWS, _LINEAR, ("fp32", "bf16"), ("gradient",), *ON_CUDA),
            *_UNFUSED_ON_CUDA,
            *_SPLIT_SUMS,
        ),
    ),
    _fused(
        "torch-addmm-gelu",
        "torch_fused:linear_gelu_epilogue",
        _LINEAR,
        "torch._addmm_activation, which is erf on a CPU",
        devices=("cpu",),
        issue=ONEDNN_ERF,
        shown_by=_ALONE,
    ),
    _fused(
        "torch-addmm-gelu-cuda",
        "torch_fused:linear_gelu_epilogue",
        _LINEAR,
        "torch._addmm_activation, which is tanh on CUDA",
        "tanh",
        devices=("cuda",),
        others=_SPLIT_SUMS,
    ),
    _fused(
        "torch-onednn-linear-gelu",
        "torch_onednn:linear_gelu",
        _LINEAR,
        "oneDNN's own epilogue",
        formats=("fp32",),
        devices=("cpu",),
        issue=ONEDNN_ERF,
        shown_by=("bound", "large", "identity"),
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
        issue=VECTOR_ERF,
        shown_by=_ALONE,
        others=(
            *_UNFUSED,
            *issues(UNFUSED_BIAS, _LINEAR, ("bf16",), ("bound", "gradient", "dtypes"), *ON_CUDA),
            *_SPLIT_SUMS,
        ),
    ),
    _fused(
        "torch-layernorm-gelu",
        "torch_fused:layernorm_gelu",
        "layernorm_gelu",
        "norm, then gelu",
        issue=VECTOR_ERF,
        shown_by=("bound", "batch", "large"),
        others=(
            *issues(LAYERNORM_16_BIT, "layernorm_gelu", ("bf16", "fp16"), ("gradient",), ("cpu",)),
            *issues(LAYERNORM_16_BIT, "layernorm_gelu", ("bf16",), ("gradient_sums",), ("cpu",)),
        ),
    ),
    _fused(
        "torch-compile-layernorm-gelu",
        "torch_compiled:layernorm_gelu",
        "layernorm_gelu",
        "torch.compile",
        issue=VECTOR_ERF,
        shown_by=("bound", "batch", "large"),
    ),
    _fused(
        "torch-conv-relu-pool",
        "torch_fused:conv_relu_pool",
        "conv_relu_pool",
        "conv2d, relu, max_pool2d",
        issue=CONV_16_BIT,
        shown_by=("bound", "gradient"),
        issue_formats=("bf16", "fp16"),
        others=_CONV_ON_CUDA,
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
