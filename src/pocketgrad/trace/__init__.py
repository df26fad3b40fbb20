"""What is recorded of a run: spans, channels with their samples, metadata; and the one clock."""
