"""Read what other tools tell of machines (nvidia-smi, kubectl, Slurm …) as a fleet profile."""
