"""What the comparisons share: driving an eris process, comparing results, the benchmark's files."""
