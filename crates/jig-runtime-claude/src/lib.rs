//! Translates the Claude Code command line and stream into runtime terms.
