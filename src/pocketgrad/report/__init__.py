"""Results as text, tables and pages."""
