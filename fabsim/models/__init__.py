"""The laws: queues, transports, splits. Each is a frozen dataclass that is a pytree: its class chooses the program, its
fields are the parameters, in SI units. A sweep is a model with a leading axis; a gradient is itself a model."""
