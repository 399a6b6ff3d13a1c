"""Runs the same queries over the same Parquet files in several engines, checks the answers, and
reports."""
