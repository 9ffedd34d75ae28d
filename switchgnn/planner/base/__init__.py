"""What the whole planner stands on: arrays, lanes, the direction of an exchange, errors."""
