"""Plays agents over problems, compares what they made with the reference, the bound and people, draws the reports."""
