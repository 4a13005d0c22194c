"""Whether torch runs on a machine: what is installed, what is there, and real work on each GPU."""
