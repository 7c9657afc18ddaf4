"""Building a generated library on this machine and running it."""
