//! Snapshots and the manifests that refer to them, over a disk that loses power, fails, is full and damaged: the
//! database is that of some moment, and of none before what was acknowledged; or an error says what is wrong.

mod careless;
mod check;
mod damage;
mod files;
mod histories;
mod numbers;
mod process;
mod room;
mod shared;
mod threads;
mod unfinished;
