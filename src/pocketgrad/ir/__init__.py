"""The graph: typed values, nodes, the rules of a legal program. It knows no op by name."""
