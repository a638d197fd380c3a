"""The package that is installed for the tests is none of them."""

collect_ignore = ["site-packages"]
