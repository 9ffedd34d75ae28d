"""The paper's figures from simulations: what they are, a runner, CSV, pictures, one table.

`paper.py` has a function per figure. `run_points` simulates what has no result yet, and
`write_figures` makes of the results what people look at.
"""
