//! The tree through its public interface.

mod differential;
mod driver;
mod memory;
