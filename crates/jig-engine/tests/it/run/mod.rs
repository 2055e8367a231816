//! Whole attempts: a definition, a real repository, a scripted agent.

mod edges;
mod gates;
mod reports;
mod world;
