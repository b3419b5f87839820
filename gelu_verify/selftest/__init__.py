"""The harness proves itself: kernels with one known fault each, and sound ones.

Every defect of the catalogue must be rejected by the check it names, for the reason it states;
every sound kernel must be accepted with every seed. The catalogue is data and code of
:mod:`reference_kernels.defects` and :mod:`reference_kernels.sound`; :mod:`.entry` is how it is
declared, :mod:`.run` runs it through the same checks as any kernel, :mod:`.verdict` compares what
was found with what was stated, :mod:`.usual` holds the same kernels to the tests in use today.
"""
