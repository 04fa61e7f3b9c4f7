"""Sweeps: many runs of one scenario, planned into programs and shards, run, journalled and read back as one dataset."""
