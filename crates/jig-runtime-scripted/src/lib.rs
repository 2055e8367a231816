//! Plays a scripted agent as a real child process and translates its stream into runtime terms.
