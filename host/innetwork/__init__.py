"""The exchange over the switch: features up, sums down."""
