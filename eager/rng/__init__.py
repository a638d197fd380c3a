"""Random numbers: generators, distributions, and the functions that draw."""
