"""The truth: mpmath oracle, its cross-checks, closed-form thresholds, fast float64 reference.

Nothing here is imported eagerly: ``fast`` needs torch, ``crosscheck`` needs gmpy2 and python-flint.
"""
