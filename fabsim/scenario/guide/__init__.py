"""What a person may ask about the keys: their reference, the schema for editors, a scenario to begin with."""
