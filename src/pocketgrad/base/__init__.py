"""Element types, errors, units and settings: what every layer may use, without any device."""
