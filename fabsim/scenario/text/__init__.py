"""A scenario as text: where each value stands, what is laid over it, and how what is wrong is said."""
