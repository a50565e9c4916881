//! Chunk files over a disk that loses power, fails, is full and damaged: what is referred to is there, byte by byte, or
//! an error says where it is not.

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod histories;
mod mistakes;
mod others;
mod process;
