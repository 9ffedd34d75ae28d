"""`switchgnn run`: plan, build a fabric, install, exchange, verify, report."""

from switchgnn.commands.run.job import RunOptions, RunReport, WorkerReport, run_job

__all__ = ["RunOptions", "RunReport", "WorkerReport", "run_job"]
