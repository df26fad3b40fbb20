"""The tests. A package, so that `tests.helpers` is ours wherever it is imported."""
