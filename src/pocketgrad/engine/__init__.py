"""From a graph to an executable on a backend."""
