//! The emitter: every event of an attempt, in order, to disk and to a sink.
//!
//! Under one lock an event gets its number, loses its secrets, is cut to its
//! bound, is appended to the JSONL file and handed to the sink, in that order:
//! so numbers are gapless, both records hold the same, and what was announced
//! is on disk before the caller goes on. Neither file nor sink can fail a
//! phase; what went wrong with them is reported at the end.

use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jig_protocol::event::{self, Event, EventBody};
use jig_protocol::time::Clock;
use jig_protocol::{limits, text};
use serde_json::{Value, json};

use crate::redact::Redactor;

/// Where else events go, besides the attempt's JSONL file: a store, a screen.
///
/// Events arrive one at a time and in order, redacted and bounded.
pub trait EventSink: Send + Sync {
    /// Takes one event. Must not block: it is called under the emitter's lock.
    ///
    /// # Errors
    ///
    /// Why the event was not taken. It is reported in the outcome and changes
    /// nothing else.
    fn emit(&self, event: &Event) -> Result<(), SinkError>;

    /// Makes what was taken so far durable. Called when an agent is about to
    /// be asked, when an entry has its terminal record, and at the end.
    fn flush(&self) -> Pin<Box<dyn Future<Output = Result<(), SinkError>> + Send + '_>> {
        Box::pin(async { Ok(()) })
    }
}

/// Why a sink did not take an event.
#[derive(Debug, thiserror::Error)]
#[error("the event sink failed: {0}")]
pub struct SinkError(pub String);

/// A sink that keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSink;

impl EventSink for NoSink {
    fn emit(&self, _: &Event) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Gives every event of one attempt its number and its place on disk.
pub(crate) struct Emitter {
    clock: Arc<dyn Clock>,
    redactor: Arc<Redactor>,
    sink: Arc<dyn EventSink>,
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    file: Option<File>,
    /// Of everything that was written; `None` when the file was not empty at
    /// first, or a line was not written whole.
    written: Option<blake3::Hasher>,
    /// What somebody else did to the file, once that was looked at.
    altered: Option<&'static str>,
    last_seq: u64,
    /// The last line was not written whole; the next one begins on a new line.
    torn: bool,
    lost_lines: u64,
    refused: u64,
    first_problem: Option<String>,
}

impl Emitter {
    /// Opens the trace for appending, 0600. A trace that cannot be opened is
    /// remembered: events then reach the sink alone.
    pub(crate) fn open(
        path: &Path,
        clock: Arc<dyn Clock>,
        redactor: Arc<Redactor>,
        sink: Arc<dyn EventSink>,
    ) -> Self {
        let opened = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0))
            .open(path);
        let (file, problem) = match opened {
            Ok(file) => (Some(file), None),
            Err(error) => {
                let problem = format!("cannot open the trace {}: {error}", path.display());
                (None, Some(problem))
            }
        };
        let is_empty = |file: &File| file.metadata().is_ok_and(|meta| meta.len() == 0);
        let written = file.as_ref().filter(|file| is_empty(file));
        Self {
            clock,
            redactor,
            sink,
            path: path.to_owned(),
            state: Mutex::new(State {
                written: written.map(|_| blake3::Hasher::new()),
                altered: None,
                file,
                last_seq: 0,
                torn: false,
                lost_lines: 0,
                refused: 0,
                first_problem: problem,
            }),
        }
    }

    /// Why there is no file; `None` when there is one.
    pub(crate) fn opening_problem(&self) -> Option<String> {
        let state = self.state();
        match state.file {
            Some(_) => None,
            None => state.first_problem.clone(),
        }
    }

    /// The attempt's secrets.
    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Says what happened, in a phase or outside of any.
    pub(crate) fn emit(&self, phase: Option<&str>, body: &EventBody) {
        self.emit_measured(phase, body);
    }

    /// The same, and how many bytes its line took in the file.
    pub(crate) fn emit_measured(&self, phase: Option<&str>, body: &EventBody) -> usize {
        let name = body
            .name()
            .map(|name| self.redactor.text(name).into_owned());
        let payload = body.payload().map(|mut payload| {
            self.redactor.value(&mut payload);
            bounded(payload)
        });
        let mut state = self.state();
        state.last_seq += 1;
        let event = Event {
            seq: state.last_seq,
            kind: body.kind(),
            phase: phase.map(str::to_owned),
            name,
            payload,
            started_at: self.clock.now(),
        };
        let bytes = state.append(&event);
        if let Err(SinkError(why)) = self.sink.emit(&event) {
            state.refused += 1;
            state.problem(why);
        }
        bytes
    }

    /// Makes the sink keep what it has.
    pub(crate) async fn flush(&self) {
        if let Err(SinkError(why)) = self.sink.flush().await {
            let mut state = self.state();
            state.refused += 1;
            state.problem(why);
        }
    }

    /// Looks whether the file holds what was written to it and nothing else, and
    /// tells when it does not: without a sandbox an agent can write anywhere.
    /// What the sink was given is not concerned.
    pub(crate) fn check(&self) {
        let altered = self.state().look(&self.path);
        if let Some(how) = altered {
            self.state().altered = altered;
            let entry = event::RuntimeLog {
                text: format!("the trace {} {how}", self.path.display()),
                detail: None,
            };
            let log = "trace_altered".to_owned();
            self.emit(None, &EventBody::RuntimeLog { log, entry });
        }
    }

    /// Makes the file and the sink durable, and says what was not recorded;
    /// `None` when everything was.
    pub(crate) async fn close(&self) -> Option<String> {
        self.flush().await;
        let mut state = self.state();
        let synced = state.file.as_ref().map_or(Ok(()), File::sync_data);
        if let Err(error) = synced {
            state.lost_lines += 1;
            state.problem(error.to_string());
        }
        let lost = state.first_problem.as_ref().map(|problem| {
            format!(
                "{} trace lines were not written and {} events were refused by the sink: {problem}",
                state.lost_lines, state.refused
            )
        });
        let altered = state.altered.map(|how| {
            format!(
                "the trace {} {how}; what jig recorded is in the store",
                self.path.display()
            )
        });
        let problems: Vec<String> = altered.into_iter().chain(lost).collect();
        (!problems.is_empty()).then(|| problems.join("; "))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while a line was written leaves a torn line at worst.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes the event's line, and says how long it is.
    fn append(&mut self, event: &Event) -> usize {
        let line = match serde_json::to_vec(event) {
            Ok(line) => line,
            Err(error) => {
                self.lost(&error.to_string());
                return 0;
            }
        };
        self.write(&line);
        line.len() + 1
    }

    fn write(&mut self, line: &[u8]) {
        let Some(file) = self.file.as_mut() else {
            self.lost_lines += 1;
            return;
        };
        let mut bytes = Vec::with_capacity(line.len() + 2);
        if self.torn {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
        self.torn = true;
        match file.write_all(&bytes) {
            Ok(()) => {
                self.torn = false;
                if let Some(written) = &mut self.written {
                    written.update(&bytes);
                }
            }
            Err(error) => {
                // How much of it arrived is not known.
                self.written = None;
                self.lost(&error.to_string());
            }
        }
    }

    /// What somebody else did to the file at `path`.
    fn look(&self, path: &Path) -> Option<&'static str> {
        let (file, written) = (self.file.as_ref()?, self.written.as_ref()?);
        let same = |there: &std::fs::Metadata| {
            let held = file.metadata();
            held.is_ok_and(|held| (held.dev(), held.ino()) == (there.dev(), there.ino()))
        };
        if !path.symlink_metadata().is_ok_and(|there| same(&there)) {
            return Some("was removed or replaced by something other than jig");
        }
        let mut found = blake3::Hasher::new();
        let read = File::open(path).and_then(|file| found.update_reader(file).map(drop));
        if read.is_ok() && found.finalize() == written.finalize() {
            None
        } else {
            Some("holds what something other than jig wrote")
        }
    }

    fn lost(&mut self, why: &str) {
        self.lost_lines += 1;
        self.problem(why.to_owned());
    }

    fn problem(&mut self, why: String) {
        self.first_problem.get_or_insert(why);
    }
}

/// A payload over its bound becomes its own beginning as text.
fn bounded(payload: Value) -> Value {
    let whole = payload.to_string();
    if whole.len() <= limits::EVENT_PAYLOAD_BYTES {
        return payload;
    }
    let mut room = limits::EVENT_PAYLOAD_BYTES / 2;
    loop {
        // Quotes and escapes grow when text becomes a string of JSON.
        let cut = json!({"truncated": true, "prefix": text::head(&whole, room)});
        if cut.to_string().len() <= limits::EVENT_PAYLOAD_BYTES || room == 0 {
            return cut;
        }
        room = room * 3 / 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jig_protocol::event::{AgentText, EngineError, RuntimeLog};
    use jig_protocol::time::{Monotonic, Sleep, Timestamp};

    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::EPOCH
        }
        fn monotonic(&self) -> Monotonic {
            Monotonic::from_start(std::time::Duration::ZERO)
        }
        fn sleep_until(&self, _: Monotonic) -> Sleep {
            Box::pin(std::future::pending())
        }
    }

    #[derive(Default)]
    struct Kept {
        events: Mutex<Vec<Event>>,
        refuse: bool,
    }

    impl EventSink for Kept {
        fn emit(&self, event: &Event) -> Result<(), SinkError> {
            self.events.lock().unwrap().push(event.clone());
            if self.refuse {
                return Err(SinkError("full".into()));
            }
            Ok(())
        }
    }

    fn emitter(dir: &Path, redactor: Redactor, sink: &Arc<Kept>) -> Emitter {
        let sink: Arc<dyn EventSink> = Arc::<Kept>::clone(sink);
        Emitter::open(
            &dir.join("trace.jsonl"),
            Arc::new(Still),
            Arc::new(redactor),
            sink,
        )
    }

    fn lines(dir: &Path) -> Vec<Event> {
        std::fs::read_to_string(dir.join("trace.jsonl"))
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn says(text: &str) -> EventBody {
        EventBody::AgentText(AgentText { text: text.into() })
    }

    #[tokio::test]
    async fn file_and_sink_hold_the_same_gapless_events() {
        let dir = tempfile::tempdir().unwrap();
        let sink = Arc::new(Kept::default());
        let emitter = Arc::new(emitter(dir.path(), Redactor::default(), &sink));
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let emitter = Arc::clone(&emitter);
                std::thread::spawn(move || {
                    for _ in 0..50 {
                        emitter.emit(Some("p"), &says(&format!("from {n}")));
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let written = lines(dir.path());
        let numbers: Vec<u64> = written.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..=400).collect::<Vec<_>>());
        assert_eq!(*sink.events.lock().unwrap(), written);
        assert_eq!(emitter.close().await, None);
    }

    #[tokio::test]
    async fn a_failing_sink_is_reported_and_fails_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let sink = Arc::new(Kept {
            refuse: true,
            ..Kept::default()
        });
        let emitter = emitter(dir.path(), Redactor::default(), &sink);
        emitter.emit(None, &says("one"));
        emitter.emit(None, &says("two"));
        assert_eq!(lines(dir.path()).len(), 2);
        let problem = emitter.close().await.unwrap();
        assert!(problem.contains("2 events were refused") && problem.contains("full"));
    }

    #[test]
    fn the_file_is_private_and_never_a_link() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let sink = Arc::new(Kept::default());
        emitter(dir.path(), Redactor::default(), &sink).emit(None, &says("x"));
        let mode = std::fs::metadata(dir.path().join("trace.jsonl"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &link).unwrap();
        let opened = Emitter::open(
            &link,
            Arc::new(Still),
            Arc::new(Redactor::default()),
            Arc::new(NoSink),
        );
        assert!(opened.opening_problem().is_some());
        assert!(!dir.path().join("elsewhere").exists());
    }

    #[test]
    fn secrets_leave_before_the_cut_and_payloads_fit() {
        let dir = tempfile::tempdir().unwrap();
        let sink = Arc::new(Kept::default());
        let redactor = Redactor::new([("KEY", "open\"sesame")]);
        let emitter = emitter(dir.path(), redactor, &sink);
        for filler in ["x", "\"", "é", "\u{1}"] {
            // So that the cut would go through the middle of the secret.
            for back in 0..20 {
                let before = filler.repeat((limits::EVENT_PAYLOAD_BYTES / 2 - back) / filler.len());
                emitter.emit(
                    None,
                    &EventBody::RuntimeLog {
                        log: "open\"sesame".into(),
                        entry: RuntimeLog {
                            text: format!("{before}open\"sesame{}", "y".repeat(70_000)),
                            detail: None,
                        },
                    },
                );
            }
        }
        let text = std::fs::read_to_string(dir.path().join("trace.jsonl")).unwrap();
        assert!(!text.contains("sesame") && !text.contains("open\\"));
        for event in lines(dir.path()) {
            let payload = event.payload.unwrap();
            assert!(payload.to_string().len() <= limits::EVENT_PAYLOAD_BYTES);
            assert_eq!(payload["truncated"], json!(true));
            assert_eq!(event.name.as_deref(), Some("[redacted:KEY]"));
        }
    }

    #[test]
    fn a_torn_line_does_not_spoil_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let sink = Arc::new(Kept::default());
        let emitter = emitter(dir.path(), Redactor::default(), &sink);
        {
            let mut state = emitter.state();
            state
                .file
                .as_mut()
                .unwrap()
                .write_all(b"{\"seq\":1,\"ty")
                .unwrap();
            state.torn = true;
        }
        emitter.emit(
            None,
            &EventBody::EngineError(EngineError { error: "e".into() }),
        );
        let text = std::fs::read_to_string(dir.path().join("trace.jsonl")).unwrap();
        let last = text.lines().last().unwrap();
        assert!(serde_json::from_str::<Event>(last).is_ok(), "{text}");
    }
}
