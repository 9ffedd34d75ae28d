"""`switchgnn run`: plan, build a fabric, install, exchange, verify, report."""

from switchgnn.commands.run.job import run_job
from switchgnn.commands.run.report import RunOptions, RunReport, WorkerReport

__all__ = ["RunOptions", "RunReport", "WorkerReport", "run_job"]
