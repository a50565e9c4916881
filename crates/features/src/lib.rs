//! Nothing but dependencies: with the same features of each in every build, DataFusion is compiled once for the shell,
//! the tests and the Python module. Why: docs/decisions/0001.

#![forbid(unsafe_code)]
