//! `jig` as a user runs it: the real binary, real repositories, a real store.

mod env;
