"""The commands of `python -m compare`: a module each, with `HELP`, `add_arguments(parser)` and `run(arguments)`."""
