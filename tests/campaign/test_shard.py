"""What a worker does for a shard."""

import pytest

from gelu_verify.campaign import shard
from gelu_verify.exhaustive.census import Census
from tests.campaign.campaigns import FIRST, job

_MOST = 1 << 18


@pytest.mark.parametrize("start", [FIRST, 1 << 31, 0])
@pytest.mark.parametrize("patterns", [_MOST - 1, _MOST, _MOST + 1, 2 * _MOST])
def test_a_call_takes_no_more_than_a_program_of_the_interpreter_does(tmp_path, start, patterns):
    task, sizes, census = job(tmp_path), [], Census()
    sound = shard.load(task)

    def counted(x):
        sizes.append(x.numel())
        return sound(x)

    shard.measure_shard(task, counted, start, start + patterns, census)
    assert max(sizes) <= _MOST
    assert census.patterns == patterns
    # One before each call but where there is none, or it has the other sign.
    assert sum(sizes) == patterns + len(sizes) - (start % (1 << 31) == 0)
