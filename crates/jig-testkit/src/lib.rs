//! What the tests of every crate share: fixtures, a clock that is moved by
//! hand, the host program of the hidden modes, looks at the table of processes,
//! the genuine agent programs and the model that they talk to.
//!
//! Only ever a development dependency. It must not know the engine, the
//! control plane or an agent adapter.
//!
//! Everything here panics with a readable message where a product would
//! return an error: a fixture that fails is a test that fails.

#![warn(missing_docs)]

pub mod clock;
mod effort;
mod host;
pub mod lab;
pub mod model;
pub mod processes;
pub mod real;
pub mod repo;
pub mod streams;
pub mod stub;
mod wait;

pub use clock::ManualClock;
pub use effort::{long, repeat};
pub use host::{host, host_path};
pub use repo::Repo;
pub use wait::{BOUND, wait_until, wait_until_async};
