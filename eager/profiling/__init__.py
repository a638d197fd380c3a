"""What runs, and how long it takes: events, tables of them, and the code that is swapped in while a profiler runs."""
