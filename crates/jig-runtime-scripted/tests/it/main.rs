//! Tests of the scripted agent: a real process below a real supervisor.

mod bench;
mod ends;
mod meeting;
mod steps;
