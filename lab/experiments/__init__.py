"""The experiments of the theses on micro-operators (003) and Modularis (000): measuring, tables, plots."""
