//! Owns the truth: definitions, runs, jobs, attempts, leases, events, worktree ledger; serves it over HTTP.
