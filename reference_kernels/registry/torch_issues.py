"""What torch is known to get wrong: public reports, and the known issues made of them."""

from __future__ import annotations

from typing import Any

from gelu_verify.kernels.spec import KnownIssue

VECTOR_ERF = (
    "https://github.com/pytorch/pytorch/issues/198183",
    "the vector erf of x86 CPUs is bounded in absolute, not in relative error",
)
ONEDNN_ERF = (
    "https://github.com/uxlfoundation/oneDNN/issues/1122",
    "oneDNN's erf is bounded in absolute, not in relative error",
)
#: The nearest public reports: of the statistics kept in 16 bits, and of a gradient's 16-bit sums.
LAYERNORM_16_BIT = (
    "https://github.com/pytorch/pytorch/issues/109188",
    "LayerNorm on the CPU keeps mean, 1/σ and the sums of its gradients in 16 bits",
)
CONV_16_BIT = (
    "https://github.com/pytorch/pytorch/issues/68048",
    "gradients of conv2d on the CPU pass through 16-bit sums",
)
UNFUSED_BIAS = (
    "https://github.com/pytorch/pytorch/issues/39661",
    "linear of a strided x of three dimensions is a product, rounded to 16 bits, and then a sum",
)
CUBLAS_PARTIAL_SUMS = (
    "https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html",
    "cuBLAS may round the parts of a split sum to 16 bits: allow_bf16_reduced_precision_reduction",
)
TF32_CONVOLUTION = (
    "https://github.com/pytorch/pytorch/issues/67384",
    "convolutions on CUDA round their factors to TF32 by default: torch.backends.cudnn.allow_tf32",
)
CONV_BIAS_APART = (
    "https://github.com/pytorch/pytorch/pull/31524",
    "conv2d on CUDA is cuDNN's product, rounded to 16 bits, and then a sum with the bias",
)
AVX512 = (
    "https://github.com/pytorch/pytorch/issues/185770",
    "oneDNN with AVX-512: NaN at +inf, inf from 2^127 on, subnormals flushed in bf16",
)
INFINITE_SUM = (
    "https://github.com/pytorch/pytorch/issues/185770",
    "x + bias overflows to -inf, and gelu(-inf) = -inf·0 is NaN",
)
#: Devices and instruction sets of the above.
ON_AVX512 = (("cpu",), ("AVX512",))
ON_AVX2 = (("cpu",), ("AVX2",))
#: Seen on an H200: reports/h200/fused.json. Other GPUs have other kernels of cuBLAS and cuDNN.
ON_CUDA = (("cuda",),)
#: Not reported for torch itself; this is the public report of the same fault.
SQUARE_OVERFLOWS = (
    "https://github.com/facebookresearch/fairseq/issues/2235",
    "x² (or dy·x) overflows and meets a factor of 0: the gradient is NaN where it should be 0 or 1",
)
#: Not reported for torch; the nearest public report is of the same form on another device. Seen at
#: 327 of all fp32 inputs, at most 5.2 ULP (x = -1.1881007), in reports/h200/exhaustive_fp32.json.
TANH_ON_CUDA = (
    "https://github.com/tenstorrent/tt-metal/issues/56517",
    "0.5x(1 + tanh u) multiplies the last digits of tanh: at some inputs by more than |x|·u",
)
HALF_ARITHMETIC = (
    "https://github.com/microsoft/onnxruntime/pull/11885",
    "1.702·x is rounded to 16 bits before the exponential, which amplifies that error by |x|",
)


def issues(
    report: tuple[str, str],
    operator: str,
    formats: tuple[str, ...],
    checks: tuple[str, ...],
    devices: tuple[str, ...] = ("cpu", "cuda"),
    instruction_sets: tuple[str, ...] = (),
    **more: Any,
) -> tuple[KnownIssue, ...]:
    """Return one known issue a check, for torch as it is known to behave."""
    link, summary = report
    fields = {"versions": ">=2.11,<2.15", **more}
    return tuple(
        KnownIssue(
            check=check,
            operator=operator,
            formats=formats,
            link=link,
            summary=summary,
            devices=devices,
            instruction_sets=instruction_sets,
            **fields,
        )
        for check in checks
    )
