"""The sources of the Python standard library as bytes, and a small GPT that reads them."""

from __future__ import annotations

import hashlib
import sysconfig
from pathlib import Path

import torch
from torch import Tensor, nn

from gelu_verify.convergence.sites import Site
from gelu_verify.convergence.tasks.task import Block, Data, Learnt, Task
from gelu_verify.errors import UnavailableError

#: Bytes read, so that a run's first second is not spent on files.
_MOST = 4 << 20
_CONTEXT = 64
_WIDTH = 64
#: Standard deviation of the embedding's weights: torch's 1 keeps the blocks quiet for long.
_EMBEDDING = 0.3
#: Windows at the end of the text, of which nothing is trained on.
_VALIDATION = 64


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


class Gpt(nn.Module):
    """Bytes in, logits of the next byte out: width 64, four heads, two blocks."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, _WIDTH)
        nn.init.normal_(self.embed.weight, std=_EMBEDDING)
        self.place = Learnt(_CONTEXT, _WIDTH)
        self.blocks = nn.Sequential(*(Block(_WIDTH, 4, _CONTEXT, True, site) for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, 256)

    def forward(self, codes: Tensor) -> Tensor:
        """Return logits (B, T, 256) for bytes (B, T)."""
        return self.head(self.norm(self.blocks(self.place(self.embed(codes)))))


TASKS = (Task("python-gpt", "byte-level GPT on the standard library", load, Gpt, 300, 16, 1e-2),)
