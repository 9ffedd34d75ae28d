"""`switchgnn run`: plan, build a fabric, install, exchange, verify, report."""
