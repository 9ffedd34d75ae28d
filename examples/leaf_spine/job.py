"""The job of four workers behind two leaves, below two spines: python job.py."""

from communities import communities

import switchgnn.torch as sg

sg.write_job(communities(), 4, "job", name="communities", leaves=2, spines=2)
