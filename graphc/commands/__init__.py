"""The commands of `graphc`: functions `add(parser)`, which add their options, and `run(given)`, which return the exit code."""
