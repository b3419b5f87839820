"""Speed of the harness itself: ``make bench``. Figures are printed, never asserted."""
