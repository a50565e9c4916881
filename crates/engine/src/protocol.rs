//! What travels between clients and owners: the commands, and what a run's participants share.
//!
//! A command is a type. The type fixes its rank, its callback and its reply: see [`request::Request`].

pub(crate) mod answers;
pub(crate) mod append;
pub(crate) mod asked;
pub(crate) mod callback;
pub(crate) mod copies;
pub(crate) mod keys;
pub(crate) mod lists;
pub(crate) mod message;
pub(crate) mod objects;
pub(crate) mod payload;
pub(crate) mod repartition;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod round_trip;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod statements;
pub(crate) mod words;
