"""What may stand in a scenario, a section a file: keys, types, units, defaults, sources and examples."""
