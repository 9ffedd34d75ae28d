"""The job of three workers: python job.py."""

from digits import digits

import switchgnn.dgl as sg

sg.write_job(digits(), 3, "job", name="digits")
