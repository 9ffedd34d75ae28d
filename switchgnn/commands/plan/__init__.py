"""`switchgnn plan`: plan, report, and check plans."""
