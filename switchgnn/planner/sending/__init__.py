"""The packets of a block, and their order."""
