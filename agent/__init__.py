"""The loop: choose a move, draft, judge, record, decide."""
