//! Integration tests of `jig-git`: real git, isolated from the user's
//! configuration.

mod main_road;
mod support;
