"""The switch as a service: readiness, and tables kept over a restart."""
