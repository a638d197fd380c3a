"""How arrays lie in memory, and whether an op gives the same wherever its operands lie."""
