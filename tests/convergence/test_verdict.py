import pytest

from gelu_verify.convergence import verdict
from gelu_verify.convergence.records import Arm, Verdict
from tests.convergence.runs import experiment, run


def test_area_is_that_of_the_trapezoids():
    uneven = run(Arm.KERNEL, 0, (4.0, 2.0, 1.0)).model_copy(update={"steps": (0, 10, 40)})
    assert verdict.area(uneven) == pytest.approx((10 * 3.0 + 30 * 1.5) / 40)


def test_margin_is_a_quarter_of_the_scatter_over_seeds():
    found = verdict.endpoint("final loss", experiment(0.0), range(8), 0.05)
    assert found.scatter == pytest.approx(0.1 * 6**0.5)  # of 0, 0.1, ... 0.7
    assert found.margin == pytest.approx(found.scatter / 4)


def test_margin_of_the_gradient_is_a_quarter_of_the_minibatches_noise_over_root_steps():
    found = verdict.endpoint("gradient error", experiment(0.0), range(8), 0.05)
    assert found.margin == pytest.approx(0.25 * 2.0 / 100**0.5)


@pytest.mark.parametrize(
    ("parts", "expected", "words"),
    [
        ({"shift": 0.0}, Verdict.EQUIVALENT, "within every margin"),
        ({"shift": 0.03, "jitter": 0.01}, Verdict.EQUIVALENT, "within every margin"),
        ({"shift": 0.1, "jitter": 0.01}, Verdict.DIFFERENT, "final loss: differs by +0.1"),
        ({"shift": -0.1, "jitter": 0.01}, Verdict.DIFFERENT, "final loss: differs by -0.1"),
        ({"shift": 0.05, "jitter": 0.2}, Verdict.NOT_ENOUGH_SEEDS, "seeds would decide"),
        ({"shift": 0.0, "error": 0.2}, Verdict.DIFFERENT, "gradient error"),
        ({"shift": 0.0, "accuracy": 0.8}, Verdict.DIFFERENT, "accuracy"),
        ({"shift": 0.0, "lost": 50}, Verdict.DIFFERENT, "diverged from 8 of 8 seeds"),
        ({"shift": 0.0, "seeds": 2}, Verdict.NOT_ENOUGH_SEEDS, "2 seeds"),
    ],
)
def test_verdict_when(parts, expected, words):
    found = verdict.decide(experiment(**parts), 0.05)
    assert found.verdict is expected
    assert any(words in reason for reason in found.reasons)


def test_seeds_needed_would_decide_when_they_are_there():
    found = verdict.endpoint("final loss", experiment(0.0, jitter=0.2), range(8), 0.05)
    assert not found.p_equivalent < 0.05
    assert 8 < found.pairs_needed < 200


@pytest.mark.parametrize(
    ("expected", "status"),
    [(Verdict.EQUIVALENT, 0), (Verdict.DIFFERENT, 1), (Verdict.NOT_ENOUGH_SEEDS, 3)],
)
def test_exit_status_of(expected, status):
    assert expected.exit_status == status


def test_gradients_are_compared_with_the_noise_and_with_torchs_own():
    runs = experiment(0.0, seeds=4, error=4e-7)
    for seed in range(4):
        wide = run(Arm.EAGER, seed, (2.0, 1.0), error=2e-7 * (1 + seed / 100))
        runs[Arm.EAGER, seed] = wide
    found = verdict.gradient_test(runs, range(4), 0.05)
    assert found.ratio == pytest.approx(4.0)  # the same for every seed
    assert (found.p_value, found.told_apart) == (0.0, True)
    assert found.eager_ratio == pytest.approx(2.0, rel=0.02)
    assert 0.0 < found.eager_p_value < 1e-4
    better = verdict.gradient_test(experiment(0.0, error=1e-7), range(4), 0.05)
    assert (better.ratio, better.p_value, better.told_apart) == (1.0, 1.0, False)
