//! An agent's part of a phase.
