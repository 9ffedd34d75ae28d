"""What every other part may import: errors, clock, files, native code, networks."""
