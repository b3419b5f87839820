"""Stored results: exact differences, and files that were tampered with."""

import base64
import zlib

import numpy as np
import pytest

from gelu_verify.errors import UsageError
from gelu_verify.statistics import outputs
from gelu_verify.statistics.outputs import Outputs, changed

DUE = np.random.default_rng(0).integers(0, 1 << 16, 5000)


def test_every_changed_result_is_counted() -> None:
    now = DUE.copy()
    now[[7, 4000, 4001]] += [1, -30, 2]
    found = changed(Outputs.of(DUE, DUE), Outputs.of(now, DUE))
    assert (found.count, found.changed) == (5000, 3)
    assert (found.first, found.farthest, found.largest_move) == (7, 4000, 30)
    assert found.any


def test_the_same_results_are_unchanged() -> None:
    found = changed(Outputs.of(DUE + 1, DUE), Outputs.of(DUE + 1, DUE))
    assert found.changed == 0
    assert not found.any


def test_patterns_of_64_bits_are_told_apart() -> None:
    low, high = np.array([-(2**63), 5]), np.array([2**63 - 1, 5])
    found = changed(Outputs.of(low, high), Outputs.of(high, high))
    assert found.changed == 1


def test_a_kernel_that_rounds_correctly_takes_next_to_no_room() -> None:
    assert len(Outputs.of(DUE, DUE).model_dump_json()) < 300


def test_long_sweeps_keep_their_digest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "LARGEST_PACKED", 100)
    one, other = Outputs.of(DUE, DUE), Outputs.of(DUE + 1, DUE)
    assert one.residuals is None
    assert changed(one, one).changed == 0
    assert changed(one, other).changed is None
    assert changed(one, other).any


def test_another_number_of_results_is_refused() -> None:
    with pytest.raises(UsageError, match="got 4999 results, expected the 5000"):
        changed(Outputs.of(DUE, DUE), Outputs.of(DUE[1:], DUE[1:]))


def packed(content: bytes) -> str:
    return base64.b85encode(zlib.compress(content)).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not base 85: \u00e4",
        "0000000000",
        packed(b"\1" * 40_000),  # other residuals
        packed(bytes(39_992)),  # too few
        packed(bytes(1 << 26)),  # 64 MiB from 64 KiB
        packed(bytes(40_000))[:-9],  # truncated
    ],
)
def test_a_tampered_text_is_refused(text: str) -> None:
    stored = Outputs.of(DUE, DUE).model_copy(update={"residuals": text})
    with pytest.raises(UsageError, match="stored outputs: got"):
        changed(stored, Outputs.of(DUE + 1, DUE))
