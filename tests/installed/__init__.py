"""Packages as users install them, in a folder that is called as theirs is, and programs that use them."""
