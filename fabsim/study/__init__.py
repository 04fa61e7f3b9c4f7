"""Studies over the engine: many scenarios as one program, and descent along its gradients."""
