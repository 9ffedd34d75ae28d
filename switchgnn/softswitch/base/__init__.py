"""What the switch stands on: a program, its tables and state, and the ports."""
