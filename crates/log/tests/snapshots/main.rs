//! Snapshots and the manifests that refer to them, over a disk that loses power, fails, is full and damaged: the
//! database is that of some moment, and of none before what was acknowledged; or an error says what is wrong.

mod check;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod files;
mod full;
mod histories;
mod mistakes;
mod numbers;
mod process;
mod room;
mod shared;
mod threads;
mod unfinished;
