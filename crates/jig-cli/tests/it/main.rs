//! `jig` as a user runs it: the real binary, real repositories, a real store.

mod demo;
mod env;
mod interrupts;
mod stock;
mod support;
mod trial;
