"""The figures, each in a module of its own."""
