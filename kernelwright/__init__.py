"""The commands and their settings, nothing else."""
