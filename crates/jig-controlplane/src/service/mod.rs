//! One operation per file: each loads, lets `jig_protocol::lifecycle` decide,
//! saves under a guard and commits, all in one transaction.
