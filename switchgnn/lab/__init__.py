"""What researchers run on top of the core: faults in virtual time, ns-3, figures."""
