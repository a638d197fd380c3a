"""The commands of `graphc`: functions that add options to a parser, and functions that return the exit code."""
