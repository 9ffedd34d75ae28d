"""The parts of a run: switches, the controller and workers, each the product's own inside."""
