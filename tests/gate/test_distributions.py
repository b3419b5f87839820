import numpy as np

from gelu_verify.gate import distributions
from gelu_verify.gate.ratchet import Weight
from gelu_verify.statistics.distribution import ErrorDistribution
from gelu_verify.statistics.sample import Sample


def sample(seed, shift=0.0, regions=("tail", "centre")):
    random = np.random.default_rng(seed)
    return Sample(
        seed=seed, per_region=4096, inputs_digest=f"{seed:016x}",
        regions={
            name: ErrorDistribution.from_errors(random.normal(shift, 0.3, 4096))
            for name in regions
        },
        outputs_digest=f"{seed:016x}",
    )  # fmt: skip


def test_other_inputs_of_the_same_law_are_no_regression():
    pairs = {seed: (sample(2 * seed), sample(2 * seed + 1)) for seed in range(20)}
    found = distributions.facts(pairs)
    assert set(found) == set(pairs)
    assert not [fact for facts in found.values() for fact in facts]


def test_shift_is_a_regression_of_the_kernel_that_has_it():
    pairs = {seed: (sample(2 * seed), sample(2 * seed + 1, 0.2 * (seed == 7))) for seed in range(9)}
    found = distributions.facts(pairs)
    assert [seed for seed, facts in found.items() if facts] == [7]
    assert {fact.weight for fact in found[7]} == {Weight.WORSE}
    assert "adjusted p" in found[7][0].text


def test_same_inputs_are_facts():
    before, now = sample(3), sample(3, 0.2)
    (found,) = distributions.facts({"k": (before, now)}).values()
    assert "at the same inputs" in found[0].text
    assert distributions.facts({"k": (before, before)}) == {"k": []}
