"""The job of two workers: python job.py."""

from links import links

import switchgnn.torch as sg

sg.write_job(links()[0], 2, "job", name="links")
