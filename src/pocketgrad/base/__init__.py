"""Element types, errors, units and settings: what every layer may use, and nothing that needs a device."""
