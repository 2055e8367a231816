//! An agent's entry into a phase: prompts, sends, corrections, gates, ends.
