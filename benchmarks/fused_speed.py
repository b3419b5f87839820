"""How fast linear + GELU is on a GPU: ours against eager, torch.compile, cuBLASLt's epilogue.

``python -m benchmarks.fused_speed [--json FILE] [--shapes 8192x768x3072 ...]``: bf16, times in µs,
medians. ``forward_us`` and ``step_us`` (forward and backward in one) are CUDA graphs replayed back
to back, so that the launch from Python does not count; ``backward_us`` is what a caller waits for.
Below, registers, spills and shared memory of every Triton kernel that ran.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._functorch.config
import triton
from rich.console import Console
from rich.table import Table
from torch import Tensor
from triton.testing import do_bench, do_bench_cudagraph

from reference_kernels import torch_compiled, torch_fused, triton_fused

_SHAPES = ("8192x768x3072", "1024x768x3072", "32x768x3072", "8192x4096x16384")
Route = Callable[[Tensor, Tensor, Tensor], Tensor]


def matmul(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return x·weightᵀ: what no fused kernel is expected to beat."""
    return torch.mm(x, weight.t())


#: (forward, backward): the epilogue and the bare product have no backward of the operator.
_ROUTES: dict[str, tuple[Route, bool]] = {
    "eager": (torch_fused.linear_gelu, True),
    "torch.compile": (torch_compiled.linear_gelu, True),
    "addmm epilogue (tanh)": (torch_fused.linear_gelu_epilogue, False),
    "matmul alone": (matmul, False),
    "triton erf": (triton_fused.linear_gelu, True),
    "triton tanh": (triton_fused.linear_gelu_tanh, True),
}


def problem(shape: str) -> list[Tensor]:
    """Return x (M, K), weight (N, K), bias (N,) of unit-normal sums."""
    m, k, n = map(int, shape.split("x"))
    parts = (torch.randn(m, k), torch.randn(n, k) / k**0.5, torch.randn(n))
    return [part.to("cuda", torch.bfloat16) for part in parts]


def forward_us(route: Route, parts: list[Tensor]) -> float:
    """Return the median of a forward without gradient, µs."""
    with torch.no_grad():
        route(*parts)  # compiles, and finds its tile
        torch.cuda.synchronize()
        return 1e3 * do_bench_cudagraph(lambda: route(*parts), return_mode="median")


def backward_us(route: Route, parts: list[Tensor]) -> float:
    """Return the median of the backward alone, all three gradients, µs; no graph."""
    # A graph that donates its buffers to its backward cannot go backward twice.
    torch._functorch.config.donated_buffer = False
    leaves = [part.clone().requires_grad_() for part in parts]
    result = route(*leaves)
    dy = torch.randn_like(result)

    def backward() -> None:
        torch.autograd.grad(result, leaves, dy, retain_graph=True)

    backward()
    return 1e3 * do_bench(backward, return_mode="median")


def step_us(route: Route, parts: list[Tensor]) -> float:
    """Return the median of forward and backward (all three gradients) in one graph, µs."""
    leaves = [part.clone().requires_grad_() for part in parts]
    dy = torch.randn_like(route(*leaves))

    def step() -> None:
        torch.autograd.grad(route(*leaves), leaves, dy)

    step()
    torch.cuda.synchronize()
    return 1e3 * do_bench_cudagraph(step, return_mode="median")


def measure(shape: str) -> list[dict[str, Any]]:
    """Return one row a route, times in µs, None where there is none."""
    parts = problem(shape)
    rows = []
    for name, (route, has_backward) in _ROUTES.items():
        backward = backward_us(route, parts) if has_backward else None
        step = step_us(route, parts) if has_backward else None
        row = {"forward_us": forward_us(route, parts), "backward_us": backward, "step_us": step}
        rows.append({"shape": shape, "route": name, **row})
        print(shape, name, *row.values(), file=sys.stderr, flush=True)
    return rows


def resources() -> list[dict[str, Any]]:
    """Return registers, spilled bytes and shared bytes of what Triton has compiled so far."""
    from reference_kernels.triton_fused import matmul_kernels, rowwise_kernels, tma_kernels

    found = []
    for module in (matmul_kernels, tma_kernels, rowwise_kernels):
        for name in [name for name in vars(module) if name.endswith("_kernel")]:
            for caches in getattr(module, name).device_caches.values():
                found += [_resources(name, built) for built in caches[0].values()]
    return found


def _resources(name: str, built: Any) -> dict[str, Any]:
    return {
        "kernel": name,
        "warps": built.metadata.num_warps,
        "stages": built.metadata.num_stages,
        "registers": built.n_regs,
        "spilled": built.n_spills,
        "shared_bytes": built.metadata.shared,
    }


def chosen() -> list[str]:
    """Return the tile that each tuned size has settled on."""
    from reference_kernels.triton_fused import launch

    return [
        f"{name} {key}: {best}"
        for name, tuned in launch.TUNED.items()
        for key, best in tuned.cache.items()
    ]


def _show(rows: list[dict[str, Any]], title: str) -> None:
    table = Table(title=title, title_justify="left")
    for column in rows[0]:
        table.add_column(column)
    for row in rows:
        table.add_row(
            *(f"{v:.1f}" if isinstance(v, float) else str(v or "-") for v in row.values())
        )
    Console(width=110).print(table)


def main() -> int:
    """Measure, print the tables, write the record; 3 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--shapes", nargs="+", default=_SHAPES)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("device: got no GPU, expected one with CUDA.", file=sys.stderr)
        return 3
    torch.manual_seed(0)
    rows = [row for shape in options.shapes for row in measure(shape)]
    used = resources()
    record = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "triton": triton.__version__,
            "cuda": torch.version.cuda,
        },
        "dtype": "bfloat16",
        "rows": rows,
        "resources": used,
        "chosen": chosen(),
    }
    _show(rows, f"linear + GELU, bf16, {record['device']}, torch {torch.__version__}; MxKxN, µs")
    _show(used, "Triton kernels as compiled")
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
