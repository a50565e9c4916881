//! The protocols against simple models, and on real threads.

mod protocols;
mod ways;
