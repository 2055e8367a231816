//! What every agent adapter shares: the `AgentRuntime` trait, the `Dialect` trait, one supervision loop, line framing, usage ledger.
