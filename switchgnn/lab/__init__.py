"""What researchers run on top of the core: faults in virtual time, the simulator, figures."""
