"""The switches, links and graphs that the figures are measured with."""
