//! When events are committed: in at most three groups per phase. The first
//! comes soon, so that who watches sees the phase begin; one more comes while it
//! runs; the last comes with its end. What follows the last phase is committed
//! together with the attempt's end.

use std::time::Duration;

use jig_protocol::event::{Event, EventKind};
use jig_protocol::time::Monotonic;

/// How long the first group of a phase waits for company.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// How long the second one does.
const SECOND_WAIT: Duration = Duration::from_secs(5);
/// The second group does not wait when this many events are pending.
const SECOND_EVENTS: usize = 500;
/// How long a group that could not be committed waits before the next try,
/// whatever is due: a full disk is not emptied by asking.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// More than this is not kept in memory: it is read from the trace file later.
const PENDING_EVENTS: usize = 10_000;
const PENDING_BYTES: usize = 8 * 1024 * 1024;

/// What waits to be committed, and how often that happened in this phase.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    pending: Vec<Event>,
    bytes: usize,
    oldest: Option<Monotonic>,
    commits: u32,
    phase_ended: bool,
    /// Events were dropped here, or a commit failed: the trace file knows.
    behind: bool,
    /// The last commit failed: not before then.
    retry_at: Option<Monotonic>,
}

/// When to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Now.
    Now,
    /// Then, unless something else comes first.
    At(Monotonic),
    /// With the end of the phase or of the attempt.
    Later,
}

/// What to commit.
#[derive(Debug, PartialEq)]
pub(super) enum Group {
    /// These events, which follow what is stored.
    Events(Vec<Event>),
    /// Whatever the trace file has beyond the store.
    FromTrace,
}

impl Grouping {
    pub(super) fn push(&mut self, event: Event, now: Monotonic) {
        match event.kind {
            EventKind::PhaseStart => {
                self.commits = 0;
                self.phase_ended = false;
            }
            EventKind::PhaseEnd => self.phase_ended = true,
            _ => {}
        }
        self.oldest.get_or_insert(now);
        if self.behind {
            return;
        }
        self.bytes += size(&event);
        self.pending.push(event);
        if self.pending.len() > PENDING_EVENTS || self.bytes > PENDING_BYTES {
            self.fall_behind();
        }
    }

    pub(super) fn due(&self) -> Due {
        let Some(oldest) = self.oldest else {
            return Due::Later;
        };
        if let Some(then) = self.retry_at {
            return Due::At(then);
        }
        match self.commits {
            0..=2 if self.phase_ended => Due::Now,
            0 => Due::At(oldest.saturating_add(FIRST_WAIT)),
            1 if self.behind || self.pending.len() >= SECOND_EVENTS => Due::Now,
            1 => Due::At(oldest.saturating_add(SECOND_WAIT)),
            _ => Due::Later,
        }
    }

    /// Takes what is to be committed now.
    pub(super) fn take(&mut self) -> Group {
        self.commits += 1;
        self.oldest = None;
        self.retry_at = None;
        self.bytes = 0;
        let events = std::mem::take(&mut self.pending);
        if std::mem::take(&mut self.behind) {
            Group::FromTrace
        } else {
            Group::Events(events)
        }
    }

    /// A commit did not succeed: nothing later may be stored before it.
    pub(super) fn failed(&mut self, now: Monotonic) {
        self.oldest.get_or_insert(now);
        self.retry_at = Some(now.saturating_add(RETRY_WAIT));
        self.commits = self.commits.saturating_sub(1);
        self.fall_behind();
    }

    /// What was never committed.
    pub(super) fn into_rest(self) -> Vec<Event> {
        self.pending
    }

    fn fall_behind(&mut self) {
        self.behind = true;
        self.pending = Vec::new();
        self.bytes = 0;
    }
}

/// About how much memory an event takes.
fn size(event: &Event) -> usize {
    128 + event
        .payload
        .as_ref()
        .map_or(0, |payload| payload.to_string().len())
}

#[cfg(test)]
mod tests {
    use jig_protocol::time::Timestamp;

    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(millis))
    }

    fn event(seq: u64, kind: EventKind) -> Event {
        Event {
            seq,
            kind,
            phase: Some("build".to_owned()),
            name: None,
            payload: None,
            started_at: Timestamp::EPOCH,
        }
    }

    /// Feeds a chain of phases and counts the commits of each.
    fn commits_per_phase(events_per_phase: u64, millis_per_event: u64) -> Vec<u32> {
        let (mut grouping, mut seq, mut now) = (Grouping::default(), 0, 0);
        let mut counts = Vec::new();
        for _ in 0..3 {
            let mut count = 0;
            for index in 0..=events_per_phase {
                let kind = match index {
                    0 => EventKind::PhaseStart,
                    last if last == events_per_phase => EventKind::PhaseEnd,
                    _ => EventKind::ToolCall,
                };
                seq += 1;
                now += millis_per_event;
                if matches!(grouping.due(), Due::At(then) if then <= at(now)) {
                    grouping.take();
                    count += 1;
                }
                grouping.push(event(seq, kind), at(now));
                while grouping.due() == Due::Now {
                    grouping.take();
                    count += 1;
                }
            }
            counts.push(count);
        }
        counts
    }

    #[test]
    fn a_phase_is_committed_in_at_most_three_groups() {
        for (events, millis) in [
            (2, 1),
            (50, 1),
            (50, 100),
            (3_000, 10),
            (30_000, 1),
            (20, 60_000),
        ] {
            for count in commits_per_phase(events, millis) {
                assert!(
                    (1..=3).contains(&count),
                    "{events} events at {millis} ms: {count}"
                );
            }
        }
    }

    #[test]
    fn the_first_group_comes_soon_and_the_last_with_the_end() {
        let mut grouping = Grouping::default();
        assert_eq!(grouping.due(), Due::Later);
        grouping.push(event(1, EventKind::PhaseStart), at(0));
        assert_eq!(grouping.due(), Due::At(at(200)));
        assert!(matches!(grouping.take(), Group::Events(events) if events.len() == 1));
        assert_eq!(grouping.due(), Due::Later);
        grouping.push(event(2, EventKind::PhaseEnd), at(300));
        assert_eq!(grouping.due(), Due::Now);
    }

    #[test]
    fn nothing_is_stored_past_a_group_that_failed() {
        let mut grouping = Grouping::default();
        grouping.push(event(1, EventKind::PhaseStart), at(0));
        let _lost = grouping.take();
        grouping.failed(at(10));
        grouping.push(event(2, EventKind::ToolCall), at(20));
        assert_eq!(grouping.due(), Due::At(at(1_010)));
        assert_eq!(grouping.take(), Group::FromTrace);
    }

    #[test]
    fn a_group_that_fails_again_and_again_is_never_due_at_once() {
        let mut grouping = Grouping::default();
        grouping.push(event(1, EventKind::PhaseStart), at(0));
        grouping.push(event(2, EventKind::PhaseEnd), at(0));
        assert_eq!(grouping.due(), Due::Now);
        for round in 0..3 {
            let now = round * 1_000;
            let _lost = grouping.take();
            grouping.failed(at(now));
            grouping.push(event(round + 3, EventKind::PhaseEnd), at(now));
            assert_eq!(grouping.due(), Due::At(at(now + 1_000)));
        }
        assert_eq!(grouping.take(), Group::FromTrace);
        assert_eq!(grouping.due(), Due::Later);
    }

    #[test]
    fn memory_is_bounded() {
        let mut grouping = Grouping {
            commits: 2,
            ..Grouping::default()
        };
        for seq in 1..=(PENDING_EVENTS as u64 + 5) {
            grouping.push(event(seq, EventKind::ToolCall), at(0));
        }
        assert!(grouping.pending.is_empty());
        assert_eq!(grouping.take(), Group::FromTrace);
    }
}
