"""The experiments of the theses on micro-operators and Modularis: measurements, tables, plots."""
