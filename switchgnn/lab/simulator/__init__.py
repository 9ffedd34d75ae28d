"""Plans, packet by packet, at sizes that no emulation reaches.

`setup` makes arrays of a plan; `simulation` gives them to the models in `models/`, which are C++
and compiled when they are first needed.
"""
