"""What is declared is what happens: the registry's ops, a user's own ops and modes."""
