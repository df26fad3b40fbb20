"""The training step as one graph, its state on a device, and the loop around it."""
