//! Drives one attempt through its chain: guards, agent and code phases, gates, boundary, repair edges, parallel groups, acceptance. Embeddable.

#![warn(missing_docs)]

mod beneath;
pub mod boundary;
pub mod gates;
pub mod host;
