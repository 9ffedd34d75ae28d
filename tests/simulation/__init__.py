"""Whole exchanges in one process and in virtual time, each repeatable from its seed.

Hosts, compiled program, switch and controller are the product's own; the network, the clock and the
faults are simulated, and all of it follows from a scenario.
"""
