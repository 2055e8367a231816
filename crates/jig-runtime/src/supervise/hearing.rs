//! What was heard of a send so far.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use jig_process::capture::{StreamFilter, Tail};
use jig_protocol::limits;

use crate::dialect::{Dialect, Exit, Heard, Verdict};
use crate::line_stream::{self, Line, LineStream};
use crate::runtime::{BoxFuture, RuntimeEvent};
use crate::session::Session;

/// The longest id of a tool call, and the most calls that are open at once.
const ID_BYTES: usize = 256;
const OPEN_TOOLS: usize = 4_096;

/// Bytes in, events out.
pub(super) struct Hearing<D> {
    dialect: D,
    lines: LineStream,
    stderr: Tail,
    /// What stderr passes before any of it is dropped.
    filter: Option<Box<dyn StreamFilter>>,
    /// Events that the consumer has not taken yet.
    pub(super) pending: VecDeque<RuntimeEvent>,
    /// Bytes for stdin that are not known yet.
    pub(super) replies: Vec<BoxFuture<'static, Vec<u8>>>,
    /// Bytes for stdin, in order.
    pub(super) writes: Vec<u8>,
    /// Stdin is to be closed once those are written.
    pub(super) close_input: bool,
    /// A time that was set, or taken back, and has not been looked at yet.
    pub(super) within: Option<Option<Duration>>,
    open_tools: BTreeSet<String>,
    terminal: bool,
}

impl<D: Dialect> Hearing<D> {
    pub(super) fn new(dialect: D, filter: Option<Box<dyn StreamFilter>>) -> Self {
        Self {
            dialect,
            lines: LineStream::default(),
            stderr: Tail::new(limits::STDERR_TAIL_BYTES),
            filter,
            pending: VecDeque::new(),
            replies: Vec::new(),
            writes: Vec::new(),
            close_input: false,
            within: None,
            open_tools: BTreeSet::new(),
            terminal: false,
        }
    }

    /// Whether the stream holds its final result.
    pub(super) const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether a tool call is under way.
    pub(super) fn has_open_tool(&self) -> bool {
        !self.open_tools.is_empty()
    }

    pub(super) fn stdout(&mut self, bytes: &[u8]) {
        for line in self.lines.push(bytes) {
            self.line(line);
        }
    }

    pub(super) fn stderr(&mut self, bytes: &[u8]) {
        match &mut self.filter {
            Some(filter) => self.stderr.push(&filter.push(bytes)),
            None => self.stderr.push(bytes),
        }
    }

    /// Stdout has ended: what it held without a line feed is a line.
    pub(super) fn stdout_ended(&mut self) {
        if let Some(line) = self.lines.finish() {
            self.line(line);
        }
    }

    /// Before the first byte.
    pub(super) fn begin(&mut self) {
        let heard = self.dialect.begin();
        self.take(heard);
    }

    fn line(&mut self, line: Line) {
        let heard = match line {
            Line::Whole(line) => self.dialect.line(&line),
            Line::Dropped { bytes } => vec![Heard::Event(line_stream::truncated(bytes))],
        };
        self.take(heard);
    }

    fn take(&mut self, heard: Vec<Heard>) {
        for heard in heard {
            match heard {
                Heard::Event(event) => self.pending.push_back(event),
                Heard::ToolOpened(id) => {
                    // A call that is not noted leaves the limit of silence on.
                    if id.len() <= ID_BYTES && self.open_tools.len() < OPEN_TOOLS {
                        self.open_tools.insert(id);
                    }
                }
                Heard::ToolClosed(id) => {
                    self.open_tools.remove(&id);
                }
                Heard::Terminal => {
                    self.terminal = true;
                    self.open_tools.clear();
                }
                Heard::Reopened => self.terminal = false,
                Heard::Reply(reply) => self.replies.push(reply),
                Heard::Write(bytes) => self.writes.extend(bytes),
                Heard::CloseInput => self.close_input = true,
                Heard::Within(time) => self.within = Some(time),
            }
        }
    }

    pub(super) fn end(&mut self, session: &mut Session, exit: Exit) -> Verdict {
        if let Some(mut filter) = self.filter.take() {
            self.stderr.push(&filter.finish());
        }
        self.dialect.end(session, exit, &self.stderr.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says back what it hears; a few words have a meaning.
    struct Echo;

    impl Dialect for Echo {
        fn line(&mut self, line: &[u8]) -> Vec<Heard> {
            let text = String::from_utf8_lossy(line).into_owned();
            match text.split_once(' ') {
                Some(("open", id)) => vec![Heard::ToolOpened(id.to_owned())],
                Some(("close", id)) => vec![Heard::ToolClosed(id.to_owned())],
                _ if text == "result" => vec![Heard::Terminal],
                _ if text == "more" => vec![Heard::Reopened],
                _ => vec![Heard::Event(RuntimeEvent::Text { text })],
            }
        }

        fn end(&mut self, _: &mut Session, _: Exit, stderr: &str) -> Verdict {
            Verdict {
                outcome: Ok(stderr.to_owned()),
                usage: None,
            }
        }
    }

    #[test]
    fn tools_open_and_close_and_a_result_closes_all() {
        let mut hearing = Hearing::new(Echo, None);
        hearing.stdout(b"open a\nopen b\nclose a\n");
        assert!(hearing.has_open_tool() && !hearing.is_terminal());
        hearing.stdout(b"result\n");
        assert!(!hearing.has_open_tool() && hearing.is_terminal());
        hearing.stdout(b"more\n");
        assert!(!hearing.is_terminal());
    }

    #[test]
    fn a_last_line_without_a_line_feed_is_heard_at_the_end() {
        let mut hearing = Hearing::new(Echo, None);
        hearing.stdout(b"one\nresult");
        assert!(!hearing.is_terminal());
        hearing.stdout_ended();
        assert!(hearing.is_terminal());
        assert_eq!(hearing.pending, [RuntimeEvent::Text { text: "one".into() }]);
    }

    #[test]
    fn the_dialect_judges_with_the_end_of_stderr() {
        let mut hearing = Hearing::new(Echo, None);
        hearing.stderr(&vec![b'x'; 2 * limits::STDERR_TAIL_BYTES]);
        hearing.stderr(b"the end");
        let verdict = hearing.end(&mut Session::new("s"), Exit::Code(0));
        let said = verdict.outcome.unwrap();
        assert!(said.ends_with("xthe end") && said.len() == limits::STDERR_TAIL_BYTES);
    }

    /// Hides a word, once it has seen all of the stream.
    struct Hide(Vec<u8>);

    impl StreamFilter for Hide {
        fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
            self.0.extend_from_slice(bytes);
            Vec::new()
        }

        fn finish(&mut self) -> Vec<u8> {
            let text = String::from_utf8_lossy(&self.0).into_owned();
            text.replace(&"secret".repeat(4_000), "***").into_bytes()
        }
    }

    #[test]
    fn stderr_is_filtered_before_its_end_is_cut() {
        let mut hearing = Hearing::new(Echo, Some(Box::new(Hide(Vec::new()))));
        for _ in 0..4_000 {
            hearing.stderr(b"secret");
        }
        hearing.stderr(b" was it");
        let verdict = hearing.end(&mut Session::new("s"), Exit::Code(0));
        assert_eq!(verdict.outcome.unwrap(), "*** was it");
    }
}
