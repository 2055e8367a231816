//! The protocol's tests: recorded exchanges, and stub agents in every mood.
