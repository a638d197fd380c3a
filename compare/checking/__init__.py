"""`check`: a case, what each mode makes of it, and how the two compare."""
