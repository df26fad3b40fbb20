"""What is launched in which order, and where every value lies; no device needed."""
