"""Kernels with one known fault each: what the harness must reject, and for what reason.

A module of ``MODULES`` is a kind of fault. A defect is a few lines on top of a sound kernel
(:mod:`reference_kernels.sound.forms`), with the decorator
:func:`gelu_verify.selftest.entry.defect`, which states

- ``report``: the public report it is modelled on, ``owner/repository#number``, if there is one;
- ``rejected_by``: every check that must reject it, with words that its message (or its input) must
  contain; ``""`` where any finding of the check will do. Other checks may reject it as well;
- ``unseen_because``: why ``assert_close(kernel, eager, atol=1e-3, rtol=1e-3)`` on unit normals lets
  it pass in at least one of its formats (measured by the selftest), or nothing, if it does not;
- ``operator``, ``formula``, ``formats``, ``contract``, ``gradient``, ... where they are not the
  default of :class:`gelu_verify.selftest.entry.Entry`.

The docstring says what is wrong, in our own words. To add one: write the function in the module of
its kind, or a new module and its name in ``MODULES``; run ``gelu-verify selftest NAME``; then
``make selftest``, which renews reports/selftest, the README's table and docs/what_this_catches.md.
Where no check rejects a defect, that is a gap of the check's whole kind: widen the check.
"""

MODULES = (
    "special_values",
    "tails",
    "overflow",
    "formulas",
    "precision",
    "layouts",
    "shapes",
    "backward",
    "aliasing",
    "dtypes",
    "determinism",
    "harm",
    "triton_launches",
)
