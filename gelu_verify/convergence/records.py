"""What training with a kernel gives back. Loads no framework."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from gelu_verify.records import Environment, Record

SCHEMA_VERSION = 2


class Arm(StrEnum):
    """What stands at the model's sites, beside which everything is the same."""

    EXACT64 = "exact64"
    REFERENCE = "reference"
    EAGER = "eager"
    NOISE = "noise"
    KERNEL = "kernel"


class Verdict(StrEnum):
    """Whether the kernel changes training."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    NOT_ENOUGH_SEEDS = "not_enough_seeds"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"

    @property
    def exit_status(self) -> int:
        """0 equivalent; 1 different, or the kernel crashed or timed out; 3 not enough seeds."""
        return {Verdict.EQUIVALENT: 0, Verdict.NOT_ENOUGH_SEEDS: 3}.get(self, 1)


class Probe(Record):
    """A look at the model at a fixed step, on fixed validation examples.

    ``gradient_error`` is against the exact gradient in float64 at the arm's own weights, so that it
    is the arithmetic's and not the trajectory's; the other figures are compared between arms.
    """

    step: int
    gradient_norm: float
    gradient_error: float = Field(description="‖gradient − exact‖ / ‖exact‖, at the same weights")
    gradient_cosine: float = Field(description="of the angle between the two")
    batch_noise: float | None = Field(
        None,
        description="reference arm: standard deviation of a minibatch's gradient over the norm of "
        "its mean",
    )
    logits: tuple[float, ...] = Field(
        (), description="at most 512 of them, the same in every arm; kept in the ledger alone"
    )
    gradient: tuple[float, ...] = Field((), description="at most 512 parts, likewise")


class Agreement(Record):
    """Inference with a trained model of the reference arm and the kernel swapped in."""

    examples: int = Field(description="positions classified: the whole validation set")
    top1_agree: int = Field(description="of them with the class that the exact model in fp64 gives")
    top1_agree_reference: int = Field(description="the same of the model it was trained as")
    largest_logit_error: float = Field(description="against fp64")
    rms_logit_error: float
    rms_logit_error_reference: float
    rms_logit: float = Field(description="size of the exact logits")


class Exposure(Record):
    """How much of what a trained model computes is in a region of x."""

    region: str
    share: float = Field(description="of the inputs of its activations")
    value_share: float = Field(description="of the sum of |f(x)|")
    value_error: float = Field(description="sum of the kernel's |error| here over all |f(x)|")
    gradient_error: float = Field(
        description="root of the kernel's squared error of dy·f'(x) here over all (dy·f'(x))²"
    )


class Run(Record):
    """One arm trained from one seed."""

    arm: Arm
    seed: int
    steps: tuple[int, ...] = Field(description="at which the validation set was evaluated")
    losses: tuple[float, ...] = Field(description="mean validation cross-entropy at these steps")
    accuracies: tuple[float, ...] = Field(description="validation accuracy at these steps")
    train_losses: tuple[float, ...] = Field(description="mean over the steps between evaluations")
    first_nonfinite: int | None = Field(description="step of the first loss that is no number")
    probes: tuple[Probe, ...]
    agreement: Agreement | None = Field(None, description="of the reference arm")
    exposure: tuple[Exposure, ...] = Field(
        (), description="of the reference arm, where a site has an activation to look at alone"
    )


class Endpoint(Record):
    """A paired comparison of the kernel's arm with the reference arm."""

    name: str
    pairs: int
    scatter: float = Field(
        description="standard deviation of the reference over seeds; of the gradient, of a "
        "minibatch's over the square root of the steps"
    )
    noise_rms: float = Field(description="root mean square of noise arm − reference")
    margin: float = Field(description="smallest mean difference that would matter")
    differences: tuple[float, ...] = Field(description="kernel − reference, a seed each")
    noise_differences: tuple[float, ...]
    eager_differences: tuple[float, ...]
    mean: float
    low: float = Field(description="of the confidence interval of the mean, 1 − 2·alpha")
    high: float
    p_equivalent: float = Field(description="of the two one-sided tests that |mean| >= margin")
    p_different: float = Field(description="that |mean| <= margin")
    power: float = Field(description="of the equivalence test for an unchanged mean")
    smallest_seen: float = Field(description="mean difference called different with 90 % power")
    pairs_needed: int | None = Field(
        description="to decide with 90 % power if mean and deviation are as seen; None: > 10,000"
    )


class Drift(Record):
    """How far an arm is from the exact one in float64 at a fixed step, median over the seeds."""

    arm: Arm
    step: int
    logits: float = Field(description="‖logits − exact64‖ / ‖exact64‖")
    gradient_norm: float = Field(description="‖gradient‖ / ‖exact64 gradient‖ − 1")
    gradient_cosine: float = Field(description="with the gradient of exact64")
    gradient_error: float = Field(description="against the exact gradient at the same weights")


class GradientTest(Record):
    """Whether the kernel's gradients are farther from exact than those of the noise arm."""

    ratio: float = Field(description="median of kernel over noise, relative error a seed")
    p_value: float = Field(description="one-sided paired t test of its logarithm")
    relative_error: float = Field(description="the kernel's median")
    told_apart: bool = Field(description="from the noise arm")
    eager_ratio: float = Field(
        description="as ratio, over torch's own: what rounding as it does costs"
    )
    eager_p_value: float


class Convergence(Record):
    """The content of a convergence record."""

    schema_version: int = SCHEMA_VERSION
    environment: Environment
    name: str
    target: str
    backward: str | None = Field(description="target of the kernel of its gradient, if named")
    operator: str
    formula: str
    format: str
    autocast: str | None = Field(
        description="format that torch.autocast computed in, with weights in fp32; None for none"
    )
    device: str
    task: str
    recipe: str = ""
    data: str = Field("", description="where the data are from")
    data_digest: str = ""
    seeds: tuple[int, ...]
    alpha: float
    verdict: Verdict
    reasons: tuple[str, ...] = Field((), description="what decided, the gravest first")
    harmless: tuple[str, ...] = Field((), description="accuracy faults that do not matter here")
    endpoints: tuple[Endpoint, ...] = ()
    drift: tuple[Drift, ...] = ()
    gradients: GradientTest | None = None
    diverged: dict[Arm, int] = Field({}, description="seeds with a loss that is no number")
    runs: tuple[Run, ...] = ()
    seconds: float = Field(0.0, description="wall time of this run; what a ledger held took none")
    trained: int = Field(0, description="runs of these seconds; the others came from a ledger")

    @model_validator(mode="after")
    def _equivalence_needs_evidence(self) -> Convergence:
        if self.verdict is Verdict.EQUIVALENT and not self.endpoints:
            raise ValueError("equivalence needs at least one endpoint")
        return self
