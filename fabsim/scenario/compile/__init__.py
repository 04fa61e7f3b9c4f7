"""From a scenario to arrays: fabric, flows, routes, laws, problem and model."""
