"""The certificate of the fast reference: its error at every fp32 input, proven.

For each of the six functions (three formulas, value and derivative) the record in
``reference/data/certificate.json`` divides the 2^32 patterns of fp32 into zones and holds, for
each, how many inputs it has, how they were certified, and the largest relative error with its
input. Every input with ``2^-60 <= |x| < 512`` is evaluated by the reference and compared with the
exact value, not by one Arb ball an input (10 µs, a day for all six) but by one Taylor model with
Arb coefficients and a proven remainder for up to 2^14 inputs (0.1 µs an input, minutes for all
six). The rest is settled by proofs.

- :mod:`.zones`: the zones, their counts, and the proofs of those in closed form;
- :mod:`.taylor`: the Taylor model of a block and its error;
- :mod:`.sweep`: the errors of a shard; :mod:`.closed_form`: evaluations in the zones by proof;
- :mod:`.run`: resumable work on several processes;
- :mod:`.record`: the certificate as JSON; :mod:`.verify`: random blocks of it again;
- :mod:`.status`, :mod:`.source`: whether it stands for the source as it is now.

    python -m gelu_verify.reference.certificate make | check | verify
"""

from gelu_verify.reference.certificate.status import CertificateStatus, status

__all__ = ["CertificateStatus", "status"]
