"""`switchgnn run`: plan, build a fabric, install, exchange, verify, report."""

from switchgnn.commands.run.job import RunOptions, run_job

__all__ = ["RunOptions", "run_job"]
