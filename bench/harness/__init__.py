"""Runs the same queries over the same Parquet in several engines, checks the answers, and reports."""
