"""The dynamics engine: a problem (arrays), one step of the fluid model, and two drivers over it."""
