//! Tests of the supervision loop, with shell scripts as agents.

mod bench;
mod clocks;
mod ends;
mod streams;
