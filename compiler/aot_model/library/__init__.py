"""A library after it was built: what it says of itself, and running it from Python."""
