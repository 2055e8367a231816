//! What a person sees while a run goes on: a line per finished step, and on a
//! terminal one live line for the step that runs.
//!
//! [`Model`] turns events into text without any I/O; [`Progress`] prints it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jig_protocol::event::{Event, EventKind};
use jig_protocol::text;
use jig_protocol::time::Timestamp;
use serde_json::Value;

/// Longest note on one line, in bytes.
const NOTE_BYTES: usize = 160;

/// The step that runs now.
#[derive(Debug, Clone, PartialEq)]
struct Current {
    phase: String,
    round: u64,
    started_at: Timestamp,
    doing: Option<String>,
}

/// What is known of the run so far.
#[derive(Debug, Default)]
pub(crate) struct Model {
    current: Option<Current>,
    /// What the agent of the phase that passed last said of its work.
    said: Option<String>,
    spent_usd: f64,
    spent_here_usd: f64,
}

fn field<'a>(event: &'a Event, name: &str) -> Option<&'a Value> {
    event.payload.as_ref().and_then(|payload| payload.get(name))
}

fn text_field<'a>(event: &'a Event, name: &str) -> Option<&'a str> {
    field(event, name).and_then(Value::as_str)
}

fn number_field(event: &Event, name: &str) -> u64 {
    field(event, name).and_then(Value::as_u64).unwrap_or(0)
}

/// One line, without characters that steer a terminal.
fn line(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|c| if crate::output::steers(c) { ' ' } else { c })
        .collect();
    let cut = text::head(&clean, NOTE_BYTES);
    if cut.len() < clean.len() {
        format!("{cut}…")
    } else {
        clean
    }
}

fn seconds(elapsed: Duration) -> String {
    let total = elapsed.as_secs();
    if total < 60 {
        format!("{:.1}s", elapsed.as_secs_f64())
    } else {
        format!("{}m{:02}s", total / 60, total % 60)
    }
}

impl Model {
    /// Takes an event in and returns the lines to print for it.
    pub(crate) fn observe(&mut self, event: &Event) -> Vec<String> {
        let phase = event.phase.as_deref().unwrap_or("");
        match event.kind {
            EventKind::PhaseStart => {
                self.current = Some(Current {
                    phase: phase.to_owned(),
                    round: number_field(event, "phase_attempt"),
                    started_at: event.started_at,
                    doing: None,
                });
                self.spent_here_usd = 0.0;
                self.said = None;
                Vec::new()
            }
            EventKind::ToolCall => {
                self.doing(event.name.as_deref().unwrap_or("tool"));
                Vec::new()
            }
            EventKind::GateFail => {
                let gate = event.name.as_deref().unwrap_or("?");
                let why = first_violation(event, gate)
                    .map(|note| format!(": {}", line(note)))
                    .unwrap_or_default();
                vec![format!("    gate {gate} failed{why}")]
            }
            EventKind::AgentEnd => {
                let cost = field(event, "cost").and_then(Value::as_f64).unwrap_or(0.0);
                self.spent_usd += cost;
                self.spent_here_usd += cost;
                Vec::new()
            }
            EventKind::PhaseDeath => vec![format!(
                "  † {phase} died: {} (undone, starting afresh)",
                line(text_field(event, "error").unwrap_or("no reason given"))
            )],
            EventKind::PhaseEnd => self.phase_end(event, phase),
            EventKind::Log => self.log(event, phase),
            // The end of the phase, which comes next, names what was written.
            EventKind::Error if event.name.as_deref() == Some("write_boundary_breach") => {
                Vec::new()
            }
            EventKind::Error => vec![format!(
                "  ! {}{}",
                event.name.as_deref().unwrap_or("error"),
                text_field(event, "error")
                    .map(|e| format!(": {}", line(e)))
                    .unwrap_or_default()
            )],
            EventKind::AttemptEnd => {
                self.current = None;
                Vec::new()
            }
            EventKind::Handoff => {
                self.said = text_field(event, "summary").map(line);
                Vec::new()
            }
            EventKind::AgentStart | EventKind::GatePass => Vec::new(),
        }
    }

    fn doing(&mut self, what: &str) {
        if let Some(current) = &mut self.current {
            current.doing = Some(line(what));
        }
    }

    fn phase_end(&mut self, event: &Event, phase: &str) -> Vec<String> {
        let Some(current) = self.current.take() else {
            return Vec::new();
        };
        let passed = text_field(event, "status") == Some("success");
        let mut out = format!("  {} {phase}", if passed { "✓" } else { "✗" });
        if current.round > 1 {
            out.push_str(&format!(" (round {})", current.round));
        }
        out.push_str(&format!(
            "  {}",
            seconds(event.started_at.saturating_since(current.started_at))
        ));
        if self.spent_here_usd > 0.0 {
            out.push_str(&format!("  ${:.2}", self.spent_here_usd));
        }
        if let Some(error) = text_field(event, "error") {
            out.push_str(&format!(" — {}", line(error)));
        }
        vec![out]
    }

    fn log(&mut self, event: &Event, phase: &str) -> Vec<String> {
        match event.name.as_deref() {
            Some("phase_skipped") => vec![format!(
                "  – {phase} skipped (if: {})",
                line(text_field(event, "guard").unwrap_or(""))
            )],
            Some("repair_edge") => vec![format!(
                "  ↻ {phase}: repaired by {} ({} of {}){}",
                line(text_field(event, "run").unwrap_or("?")),
                number_field(event, "use"),
                number_field(event, "budget"),
                self.said
                    .take()
                    .map(|said| format!(" — {said}"))
                    .unwrap_or_default()
            )],
            Some("repair_exhausted") => {
                vec![format!(
                    "  ↻ {phase}: repair budget of {} spent",
                    number_field(event, "budget")
                )]
            }
            Some("invalid_envelope") => vec![format!(
                "    answer not understood: {}",
                line(text_field(event, "error").unwrap_or(""))
            )],
            Some("rate_limited") => {
                let class = text_field(event, "class")
                    .unwrap_or("rate_limited")
                    .replace('_', " ");
                let wait = Duration::from_millis(number_field(event, "wait_ms"));
                // An agent that asks its vendor again need not say when.
                let note = match wait.as_secs_f64().ceil() {
                    0.0 => format!("{class}, trying again"),
                    seconds => format!("{class}, waiting {seconds} s"),
                };
                self.doing(&note);
                vec![format!("    {note}")]
            }
            Some("publish_held") => {
                vec![format!(
                    "  ⏸ held: {}",
                    line(text_field(event, "reason").unwrap_or(""))
                )]
            }
            Some("attempt_cancelled") => vec!["  cancelled".to_owned()],
            _ => Vec::new(),
        }
    }

    /// The live line, as of `now`; `None` when nothing runs.
    pub(crate) fn live(&self, now: Timestamp) -> Option<String> {
        let current = self.current.as_ref()?;
        let mut out = current.phase.clone();
        if current.round > 1 {
            out.push_str(&format!(" (round {})", current.round));
        }
        out.push_str(&format!(
            "  {}",
            seconds(now.saturating_since(current.started_at))
        ));
        if let Some(doing) = &current.doing {
            out.push_str(&format!("  {doing}"));
        }
        if self.spent_usd > 0.0 {
            out.push_str(&format!("  ${:.2}", self.spent_usd));
        }
        Some(out)
    }
}

/// What the gate found first, without its name.
fn first_violation<'a>(event: &'a Event, gate: &str) -> Option<&'a str> {
    let said = field(event, "violations")?.as_array()?.first()?.as_str()?;
    let found = said
        .strip_prefix(gate)
        .and_then(|rest| rest.strip_prefix(": "));
    Some(found.unwrap_or(said))
}

/// How much of the progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// Nothing.
    Nothing,
    /// A line per finished step.
    Lines,
    /// The same, and a live line for the running one.
    Live,
}

/// Prints a [`Model`] to stderr.
#[derive(Debug)]
pub(crate) struct Progress {
    model: Mutex<Model>,
    show: Show,
    bar: ProgressBar,
}

impl Progress {
    /// A progress display of the given kind.
    pub(crate) fn new(show: Show) -> Self {
        let bar = ProgressBar::with_draw_target(
            None,
            if show == Show::Live {
                ProgressDrawTarget::stderr()
            } else {
                ProgressDrawTarget::hidden()
            },
        );
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg}") {
            bar.set_style(style);
        }
        Self {
            model: Mutex::new(Model::default()),
            show,
            bar,
        }
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event in.
    pub(crate) fn observe(&self, event: &Event) {
        if self.show == Show::Nothing {
            return;
        }
        let (lines, live) = {
            let mut model = self.model();
            (model.observe(event), model.live(event.started_at))
        };
        for line in lines {
            self.print(&line);
        }
        self.paint(live);
    }

    /// Repaints the live line; called a few times a second.
    pub(crate) fn tick(&self, now: Timestamp) {
        if self.show == Show::Live {
            let live = self.model().live(now);
            self.paint(live);
            self.bar.tick();
        }
    }

    fn paint(&self, live: Option<String>) {
        if self.show == Show::Live {
            self.bar.set_message(live.unwrap_or_default());
        }
    }

    /// Prints one line above the live one; also when no progress is shown.
    pub(crate) fn print(&self, line: &str) {
        match self.show {
            Show::Nothing | Show::Lines => crate::output::note(line),
            Show::Live => self.bar.suspend(|| crate::output::note(line)),
        }
    }

    /// Takes the live line away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: EventKind, name: Option<&str>, payload: Value, at: i64) -> Event {
        Event {
            seq: 1,
            kind,
            phase: Some("build".to_owned()),
            name: name.map(str::to_owned),
            payload: Some(payload),
            started_at: Timestamp::from_millis(at),
        }
    }

    #[test]
    fn a_phase_is_shown_live_and_then_as_one_line() {
        let mut model = Model::default();
        assert!(
            model
                .observe(&event(
                    EventKind::PhaseStart,
                    None,
                    json!({"phase_attempt": 2}),
                    0
                ))
                .is_empty()
        );
        model.observe(&event(EventKind::ToolCall, Some("Edit"), json!({}), 500));
        assert_eq!(
            model.live(Timestamp::from_millis(90_000)).unwrap(),
            "build (round 2)  1m30s  Edit"
        );
        model.observe(&event(
            EventKind::AgentEnd,
            Some("builder"),
            json!({"cost": 0.25}),
            1_000,
        ));
        let lines = model.observe(&event(
            EventKind::PhaseEnd,
            None,
            json!({"status": "success"}),
            1_500,
        ));
        assert_eq!(lines, ["  ✓ build (round 2)  1.5s  $0.25"]);
        assert_eq!(model.live(Timestamp::EPOCH), None);
    }

    #[test]
    fn what_an_agent_says_cannot_control_the_terminal() {
        let mut model = Model::default();
        let payload = json!({"error": format!("a\u{1b}[2Jb\r\n{}", "x".repeat(500))});
        let lines = model.observe(&event(EventKind::PhaseDeath, Some("builder"), payload, 0));
        assert_eq!(lines.len(), 1);
        assert!(!lines[0].chars().any(char::is_control), "{lines:?}");
        assert!(lines[0].len() < NOTE_BYTES + 80);
    }

    #[test]
    fn a_phase_that_asks_for_a_repair_says_why() {
        let mut model = Model::default();
        let start = event(EventKind::PhaseStart, None, json!({"phase_attempt": 1}), 0);
        let edge = event(
            EventKind::Log,
            Some("repair_edge"),
            json!({"run": "plan", "use": 1, "budget": 3}),
            2,
        );
        model.observe(&start);
        let said = json!({"artifacts": [], "summary": "Not documented"});
        model.observe(&event(EventKind::Handoff, Some("reviewer"), said, 1));
        assert_eq!(
            model.observe(&edge),
            ["  ↻ build: repaired by plan (1 of 3) — Not documented"]
        );
        // A phase that failed has said so itself, and what came earlier is not its word.
        model.observe(&start);
        assert_eq!(
            model.observe(&edge),
            ["  ↻ build: repaired by plan (1 of 3)"]
        );
    }

    #[test]
    fn a_breach_is_told_once() {
        let mut model = Model::default();
        let start = event(EventKind::PhaseStart, None, json!({"phase_attempt": 1}), 0);
        model.observe(&start);
        let breach = json!({"breaches": [{"path": "a", "outcome": "deleted"}]});
        let name = Some("write_boundary_breach");
        let none: [String; 0] = [];
        assert_eq!(
            model.observe(&event(EventKind::Error, name, breach, 1)),
            none
        );
        let end = json!({"status": "fail", "error": "wrote a (deleted)"});
        assert_eq!(
            model.observe(&event(EventKind::PhaseEnd, None, end, 1_000)),
            ["  ✗ build  1.0s — wrote a (deleted)"]
        );
    }

    #[test]
    fn waiting_for_the_vendor_is_visible() {
        let mut model = Model::default();
        model.observe(&event(
            EventKind::PhaseStart,
            None,
            json!({"phase_attempt": 1}),
            0,
        ));
        let lines = model.observe(&event(
            EventKind::Log,
            Some("rate_limited"),
            json!({"class": "rate_limited", "wait_ms": 31_400}),
            0,
        ));
        assert_eq!(lines, ["    rate limited, waiting 32 s"]);
        let unknown = json!({"class": "overloaded", "wait_ms": 0});
        assert_eq!(
            Model::default().observe(&event(EventKind::Log, Some("rate_limited"), unknown, 0)),
            ["    overloaded, trying again"]
        );
        assert!(
            model
                .live(Timestamp::EPOCH)
                .unwrap()
                .contains("waiting 32 s")
        );
    }
}
