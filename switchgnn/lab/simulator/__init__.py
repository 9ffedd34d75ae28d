"""Plans in ns-3: packet by packet, at sizes that no emulation reaches.

`setup` makes arrays of a plan; `simulation` gives them to the models in `models/`, which are C++
and compiled against the `ns3` wheel when they are first needed.
"""
