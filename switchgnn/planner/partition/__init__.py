"""Which worker holds which vertex."""
