"""The append-only journal of attempts, and what is made from it: export, publish."""
