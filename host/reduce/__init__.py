"""All-reduces in the switch: a stream of fragments that all workers contribute to."""
