"""The graph: typed values, nodes and the rules of a legal program. It knows no operation by name."""
