"""The benchmark: the same training steps here and in other frameworks, measured side by side."""
