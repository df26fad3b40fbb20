"""Graph to graph: differentiation and clean-up."""
