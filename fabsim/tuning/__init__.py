"""Tuning a scenario: what may change becomes leaves, a descent follows their gradient, and what it found is told."""
