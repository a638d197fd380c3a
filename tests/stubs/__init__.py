"""Stubs: what editors and type checkers read in place of the names that are made when they are first used.

    python -m tests.stubs

writes every `.pyi` file anew, from the signatures and docstrings of the objects themselves. Where a signature says
less than PyTorch's documentation does, `parameters` adds the type of a parameter by its name, and `signatures` has the
forms of a function that can be called in several ways. The files are committed, so that an editor finds them in a
clone, and are part of wheels. `test_stubs.py` holds that they are what the objects say.
"""
