"""Join orders and estimates, measured: see bench/README.md."""
