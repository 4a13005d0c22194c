"""Floor 1: what is written. Readers turn bytes into documents without losing one."""
