"""The job of three workers: python job.py."""

from karate import karate

import switchgnn.torch as sg

sg.write_job(karate(), 3, "job", name="karate")
