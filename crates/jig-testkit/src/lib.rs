//! Fixtures, manual clock, the test host program, fault points: what the tests of every crate share.
