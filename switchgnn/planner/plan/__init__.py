"""The plan: its parts, its folder on disk, and its parts for leaf-spine."""
