//! Whole attempts: a definition, a real repository, a scripted agent.

mod bounds;
mod breaches;
mod cancellation;
mod clocks;
mod containment;
mod edges;
mod embedding;
mod failures;
mod faults;
mod gaps;
mod gates;
mod records;
mod reports;
mod secrets;
mod told;
mod world;
