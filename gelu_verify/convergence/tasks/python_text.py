"""The sources of the Python standard library as bytes, and small transformers that read them.

The language models say which byte follows each: after 300 steps they are right at 42 to 45 % of the
bytes, where the commonest is 27 %. Attention without a mask would see them, so that its model says
only which byte follows a window: 39 %, where the commonest is 27 %.
"""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from gelu_verify.convergence.sites import Site
from gelu_verify.convergence.tasks.layers import (
    Activated,
    Block,
    Causal,
    Gated,
    Learnt,
    Mixed,
    Normed,
)
from gelu_verify.convergence.tasks.task import Data, Task
from gelu_verify.errors import UnavailableError

#: Bytes read, so that a run's first second is not spent on files.
_MOST = 4 << 20
_CONTEXT = 64
_WIDTH = 64
#: Standard deviation of the embedding's weights: torch's 1 keeps the blocks quiet for long.
_EMBEDDING = 0.3
#: Windows at the end of the text, of which nothing is trained on.
_VALIDATION = 64
#: Bytes in a window that one byte follows, and how far the next window lies from it.
_SHORT, _STRIDE = 16, 8


def load() -> Data:
    """Return windows of 64 bytes with the byte that follows each; the text's hash is its name."""
    folder = Path(sysconfig.get_path("stdlib"))
    text = b""
    for path in sorted(folder.glob("*.py")):
        text += path.read_bytes()
        if len(text) >= _MOST:
            break
    if len(text) < 1000 * _CONTEXT:
        raise UnavailableError(
            f"task: got {len(text)} bytes of Python in the standard library, expected its sources. "
            "Use a Python that ships them."
        )
    text = text[:_MOST]
    source = f"standard library, {len(text)} bytes, SHA-256 {hashlib.sha256(text).hexdigest()}"
    count = (len(text) - 1) // _CONTEXT
    codes = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    inputs = codes[: count * _CONTEXT].view(count, _CONTEXT)
    targets = codes[1 : count * _CONTEXT + 1].view(count, _CONTEXT)
    cut = count - _VALIDATION
    return Data(source, inputs[:cut], targets[:cut], inputs[cut:], targets[cut:])


def load_short() -> Data:
    """Return windows of 16 bytes with the one byte that follows; they overlap by half."""
    long = load()

    def short(inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        windows = inputs.unfold(1, _SHORT, _STRIDE).reshape(-1, _SHORT)
        return windows, targets[:, _SHORT - 1 :: _STRIDE].flatten()

    return Data(
        long.source,
        *short(long.train_inputs, long.train_targets),
        *short(long.valid_inputs, long.valid_targets),
    )


class Reader(nn.Module):
    """Bytes in, logits of bytes out: width 64, four heads, two blocks."""

    def __init__(self, length: int, attention: Site, wide: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, _WIDTH)
        nn.init.normal_(self.embed.weight, std=_EMBEDDING)
        self.place = Learnt(length, _WIDTH)
        made = (Block(_WIDTH, Mixed(_WIDTH, 4, attention), wide()) for _ in range(2))
        self.blocks = nn.Sequential(*made)
        self.norm, self.head = nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, 256)

    def forward(self, codes: Tensor) -> Tensor:
        """Return logits (B, T, 256) for bytes (B, T)."""
        return self.head(self.norm(self.blocks(self.place(self.embed(codes)))))


class LastByte(Reader):
    """A reader that says what follows the last byte alone."""

    def forward(self, codes: Tensor) -> Tensor:
        """Return logits (B, 256) for bytes (B, T)."""
        return super().forward(codes)[:, -1]


def gpt(site: Site) -> nn.Module:
    """Return the language model with a site at each activation."""
    return Reader(_CONTEXT, Causal(_CONTEXT), lambda: Activated(_WIDTH, 4 * _WIDTH, site))


def gated(site: Site) -> nn.Module:
    """Return the language model with gated layers."""
    return Reader(_CONTEXT, Causal(_CONTEXT), lambda: Gated(_WIDTH, 4 * _WIDTH, site))


def normed(site: Site) -> nn.Module:
    """Return the language model with a normalisation before each activation."""
    return Reader(_CONTEXT, Causal(_CONTEXT), lambda: Normed(_WIDTH, 4 * _WIDTH, site))


def seeing_all(site: Site) -> nn.Module:
    """Return the model of what follows a window, with a site as the attention of each block."""
    wide = lambda: nn.Sequential(nn.Linear(_WIDTH, 4 * _WIDTH), nn.GELU())  # noqa: E731
    return LastByte(_SHORT, site, wide)


def _gpt(name: str, summary: str, build: Callable[[Site], nn.Module], operator: str) -> Task:
    summary = f"{summary} on the standard library"
    return Task(name, summary, load, build, 300, 16, 1e-2, operator=operator)


TASKS = (
    _gpt("python-gpt", "byte-level GPT", gpt, "linear_gelu"),
    _gpt("python-gpt-gated", "gated byte-level GPT", gated, "geglu"),
    _gpt("python-gpt-norm", "normalised byte-level GPT", normed, "layernorm_gelu"),
    Task(
        "python-next",
        "byte after a window of the standard library",
        load_short,
        seeing_all,
        300,
        128,
        1e-2,
        operator="attention",
    ),
)
