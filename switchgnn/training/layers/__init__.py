"""Models, and PyG's layers on the part of a graph that one worker holds."""
