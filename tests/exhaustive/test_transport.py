"""A census as text and back."""

import json

import pytest

from gelu_verify.exhaustive import transport
from gelu_verify.exhaustive.census import Census
from tests.exhaustive.passes import FAULTY, SOUND, census

PARTS = [(0xBF7FFF00, 0xBF800100), (0x7F7FFF00, 0x7F800010), (0xC0C00000, 0xC0C00100)]


@pytest.mark.parametrize("derivative", [0, 1])
@pytest.mark.parametrize("kernel", [SOUND["erf"], *FAULTY])
@pytest.mark.parametrize("contract", ["cancelling", "saturating"])
def test_text_is_the_same_when_read_and_written_again(kernel, derivative, contract):
    found = census(kernel, "erf", derivative, PARTS, contract)
    text = transport.dumps(found)
    again = transport.loads(text)
    assert transport.dumps(again) == text
    assert again.patterns == found.patterns
    assert again.zero_reach == found.zero_reach
    assert again.tallies["cancelling"].contract == found.tallies["cancelling"].contract
    json.loads(text, parse_constant=pytest.fail)  # no NaN or Infinity, which are no JSON


def test_read_census_merges_as_the_first_one():
    one, other = (census(FAULTY[0], "erf", 0, [part]) for part in PARTS[1:])
    read = transport.loads(transport.dumps(one))
    one.merge(other)
    read.merge(transport.loads(transport.dumps(other)))
    assert transport.dumps(read) == transport.dumps(one)


def test_empty_census_is_carried():
    assert transport.loads(transport.dumps(Census())).patterns == 0
