//! Chunk files over a disk that loses power, fails, is full and damaged: what is referred to is there, byte by byte, or
//! an error says where it is not.

mod careless;
mod damage;
mod histories;
mod others;
mod process;
