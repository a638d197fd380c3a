"""Sums of products in normal form: what multilinear programs compute, whatever they were written as."""
