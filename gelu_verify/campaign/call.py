"""Call a kernel inside a worker of a campaign."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def called(
    function: Callable[..., Any], arguments: tuple[torch.Tensor, ...], like: torch.Tensor
) -> torch.Tensor:
    """Return a kernel's results, which must have the shape, dtype and device of ``like``.

    Raises :class:`KernelFailure`, without the original exception: that may not reach a parent.
    """
    from gelu_verify.kernels.failure import failure
    from gelu_verify.kernels.subject import require_like

    raised = None
    try:
        actual = function(*arguments)
    except (Exception, SystemExit) as error:
        raised = failure(error)
    if raised is not None:
        raise raised
    require_like(actual, like.shape, like.dtype, like.device)
    result: torch.Tensor = actual.detach()
    return result
