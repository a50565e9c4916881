//! The indexes through their public interface.

mod differential;
mod driver;
mod hash;
mod memory;
mod reorganization;
