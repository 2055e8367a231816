//! Child processes for jig: supervisor, process groups, stop ladder, bounded capture, environment composition, kernel sandbox.
