"""The commands of `fabsim`, by what they are about; see fabsim.cli."""
