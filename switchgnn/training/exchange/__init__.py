"""Tensors between workers: sums over remote neighbours, gradients, one machine's processes."""
