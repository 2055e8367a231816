//! Every limit: its value, its unit, and why it is what it is.
//!
//! `docs/LIMITS.md` is generated from [`ALL`]. Hitting a limit names it and its
//! value. Times are [`Duration`]s, sizes are bytes.

use std::time::Duration;

/// The value of a limit, with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitValue {
    /// A plain number.
    Count(u64),
    /// Bytes.
    Bytes(u64),
    /// A time.
    Time(Duration),
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// The constant's name, in lower case.
    pub name: &'static str,
    /// Its value.
    pub value: LimitValue,
    /// Why.
    pub why: &'static str,
}

macro_rules! limits {
    ($($kind:ident $name:ident = $value:expr, $why:literal;)*) => {
        $(#[doc = $why] pub const $name: limits!(@type $kind) = $value;)*

        /// The whole table, in the order of this file.
        pub const ALL: &[Limit] = &[
            $(Limit { name: stringify!($name), value: limits!(@value $kind, $value), why: $why }),*
        ];
    };
    (@type count) => { u32 };
    (@type bytes) => { usize };
    (@type time) => { Duration };
    (@value count, $value:expr) => { LimitValue::Count($value as u64) };
    (@value bytes, $value:expr) => { LimitValue::Bytes($value as u64) };
    (@value time, $value:expr) => { LimitValue::Time($value) };
}

/// How much is kept of what has ended: on disk and in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Older ones go.
    pub age: Duration,
    /// Of the younger ones, the newest this many stay.
    pub attempts: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            age: RETAINED_FOR,
            attempts: RETAINED_ATTEMPTS,
        }
    }
}

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

limits! {
    bytes DEFINITION_BYTES = MIB, "A definition is a page of text; more is a mistake or an attack.";
    count DEFINITION_DEPTH = 32, "Deeper nesting than any definition has; keeps the parser's stack small.";
    count DEFINITION_NODES = 10_000, "Counted after aliases are expanded, so that an alias bomb is refused early.";
    bytes PROMPT_FILE_BYTES = 256 * KIB, "A prompt file is read by a model; larger ones are some other file.";
    count PARSE_CORRECTIONS = 3, "Corrections per emission after the first; a fourth bad answer is a fact.";
    count GATE_CORRECTIONS = 2, "Corrections, and deaths, when no gate of the phase declares a budget.";
    count MAX_SENDS = 64, "Per attempt; the one bound on the product of all ladders and loops.";
    count MAX_GATE_BUDGET = 20, "A gate that needs more corrections than this needs a person.";
    count MAX_REPAIR_BUDGET = 20, "A repair edge that loops more often than this will loop for ever.";
    count RETRYABLE_SENDS = 5, "Repeats per phase when the vendor is overloaded or limits the rate.";
    time BACKOFF_FLOOR = Duration::from_secs(1), "First wait before a repeat when the vendor names none.";
    time BACKOFF_CEILING = Duration::from_secs(60), "Longest wait of jig's own choosing before a repeat.";
    time PHASE_TIMEOUT = Duration::from_secs(30 * 60), "One entry of a phase, one code command, one gate command.";
    time PHASE_TIMEOUT_MAX = Duration::from_secs(4 * 60 * 60), "The most a definition may ask for.";
    time SILENCE_TIMEOUT = Duration::from_secs(5 * 60), "A send without a byte for this long has hung.";
    time SILENCE_TIMEOUT_MAX = Duration::from_secs(60 * 60), "The most a definition may ask for.";
    time ATTEMPT_CEILING = Duration::from_secs(4 * 60 * 60), "Fixed when the chain starts; nothing moves it.";
    time ATTEMPT_CEILING_MAX = Duration::from_secs(24 * 60 * 60), "The most a definition may ask for.";
    time UNWIND_TIMEOUT = Duration::from_secs(2 * 60), "Stopping, restoring and recording after an end has a clock of its own.";
    time GIT_TIMEOUT = Duration::from_secs(60), "One local git command; a checkout has the unwinding's clock.";
    time PROBE_TIMEOUT = Duration::from_secs(20), "Asking an agent CLI for its version.";
    time HANDSHAKE_TIMEOUT = Duration::from_secs(60), "One request of an agent protocol before the prompt; the work has the phase's clock.";
    count AGENT_REQUESTS = 1_000, "Requests of an agent that are answered in one send; an agent that asks on has gone astray.";
    time STOP_GRACE = Duration::from_secs(3), "Between TERM and KILL, once for a whole stop.";
    time DRAIN_GRACE = Duration::from_secs(5), "For the rest of the streams after the process ended.";
    bytes STREAM_LINE_BYTES = 4 * MIB, "A longer line of an agent's stream is dropped, with a marker.";
    count EVENT_CHANNEL = 256, "Events in flight between a send and the engine; then back-pressure, never loss.";
    bytes STDERR_TAIL_BYTES = 16 * KIB, "Kept of an agent's stderr.";
    bytes STDERR_IN_ERROR_BYTES = KIB, "The end of the kept tail that an error shows.";
    count SEND_LOGS = 200, "Log entries kept of one send (lines that are no JSON, lines dropped); the rest is counted.";
    count SEND_EVENTS = 10_000, "Other events kept of one send (text, tool calls); the rest is counted.";
    bytes SEND_EVENTS_BYTES = 64 * MIB, "Everything kept of one send's events together; the rest is counted.";
    bytes UNPARSED_LINE_BYTES = 512, "Shown of a stream line that is no JSON.";
    bytes ENVELOPE_BYTES = MIB, "The most text that is searched for an envelope.";
    count ENVELOPE_DEPTH = 64, "Deeper nesting in an envelope is refused.";
    bytes INVALID_ENVELOPE_BYTES = 64 * KIB, "Kept in the trace of an answer that held no envelope.";
    bytes TRANSCRIPT_DIGEST_BYTES = 16 * KIB, "Earlier exchanges repeated to a runtime that cannot resume.";
    bytes OUTPUT_TAIL_BYTES = 4 * KIB, "Kept of a command's output as evidence, per stream.";
    bytes OUTPUT_FILE_BYTES = 16 * MIB, "Kept of a command's output in the attempt directory, per stream.";
    bytes REPORT_LINE_BYTES = 32 * KIB, "The last stdout line of a phase that reports fields.";
    bytes EVENT_PAYLOAD_BYTES = 64 * KIB, "A larger payload keeps its first half of this.";
    bytes AGENT_TEXT_BYTES = 32 * KIB, "One event of an agent's free text.";
    bytes TOOL_PAYLOAD_BYTES = 64 * KIB, "One event of an agent's tool call.";
    bytes RESULT_BYTES = 64 * KIB, "The result document of an attempt.";
    bytes RESULT_ENVELOPE_BYTES = 8 * KIB, "One envelope, or one error, inside the result document.";
    bytes ATTEMPT_ERROR_BYTES = 16 * KIB, "The error text of an attempt.";
    count BREACH_PATHS_SHOWN = 20, "Paths named in a breach; the whole list is in the attempt's file.";
    bytes CONTENT_BUDGET_BYTES = 2 * 1024 * MIB, "Content kept for exact restore, per attempt; ignored files and build outputs fill at most three quarters.";
    count CONTENT_BUDGET_FILES = 200_000, "Files kept for exact restore, per attempt.";
    bytes SECRET_MIN_BYTES = 4, "Shorter values are everywhere; redacting them would hide the trace.";
    count RETAINED_ATTEMPTS = 100, "Attempt directories kept by `jig gc`.";
    time RETAINED_FOR = Duration::from_secs(30 * 24 * 60 * 60), "Attempt directories kept by `jig gc`.";
    time CI_TIMEOUT = Duration::from_secs(30 * 60), "Default wait for CI on one head.";
    time CI_TIMEOUT_MIN = Duration::from_secs(60), "CI is never faster.";
    time CI_TIMEOUT_MAX = Duration::from_secs(6 * 60 * 60), "A mistyped wait must not hold a slot for days.";
    count CI_ROUNDS_MAX = 3, "Each repair round repeats the reviewers.";
    time BARRIER_TIMEOUT = Duration::from_secs(30), "A scripted agent's rendezvous.";
}
