"""Runs made by hand."""

from gelu_verify.convergence.records import Arm, Probe, Run


def run(arm, seed, losses, error=1e-7, accuracy=0.9, lost=None):
    def probe(step):
        noise = 2.0 if arm is Arm.REFERENCE else None
        return Probe(step=step, gradient_norm=1.0, gradient_error=error, gradient_cosine=1.0,
                     batch_noise=noise, logits=(1.0, 2.0), gradient=(1.0, -1.0))  # fmt: skip

    steps = tuple(range(0, 100 * len(losses), 100))
    return Run(arm=arm, seed=seed, steps=steps, losses=tuple(losses), train_losses=(),
               accuracies=(accuracy + seed / 100,) * len(losses), first_nonfinite=lost,
               probes=(probe(0), probe(steps[-1])))  # fmt: skip


def experiment(shift, seeds=8, error=1e-7, jitter=0.0, accuracy=0.9, lost=None):
    """Final losses 1.0, 1.1, ... of the reference; the kernel's lie ``shift`` higher."""
    runs = {}
    for seed in range(seeds):
        for arm in Arm:
            own = arm is Arm.KERNEL
            last = 1.0 + seed / 10 + (shift + jitter * (-1) ** seed if own else 0.0)
            runs[arm, seed] = run(arm, seed, (2.0, last), error if own else 1e-7,
                                  accuracy if own else 0.9, lost if own else None)  # fmt: skip
    return runs
