"""Array kernels of fabsim, each in plain jnp: the incidence of flows and links as an adjoint pair of load and read."""

from fabsim_kernels.load import Incidence, load, read

__all__ = ["Incidence", "load", "read"]
