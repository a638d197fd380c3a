"""What is known of values, from how they are made."""
