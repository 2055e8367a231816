//! The task that answers for one supervisor until it is reaped.
//!
//! It outlives the handle: dropping the handle only closes the orders, and the
//! driver goes on until nothing is left.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Child;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::adopted::stop_adopted;
use super::registry::live;
use super::spec::{Exit, LiveSupervisors, Spec, StartError, Teardown};
use crate::identity::ProcessIdentity;
use crate::supervisor::{Job, Lines, Removals, Report, Request, Stopped, line};

/// What a supervisor may take beyond the grace: to repeat KILL, and to be
/// scheduled. Then it is taken for stuck and ended itself.
const STUCK_AFTER: Duration = Duration::from_secs(15);

/// What is known so far.
#[derive(Debug, Default, Clone)]
pub(super) struct State {
    pub(super) ready: bool,
    pub(super) exit: Option<Exit>,
    pub(super) teardown: Option<Teardown>,
}

/// What the handle wants.
pub(super) enum Order {
    Start(Box<Job>),
    Stop(Duration),
}

pub(super) struct Driver {
    child: Child,
    pid: u32,
    identity: Option<ProcessIdentity>,
    record: Option<Arc<dyn LiveSupervisors>>,
    reader: OwnedReadHalf,
    writer: Option<OwnedWriteHalf>,
    orders: mpsc::UnboundedReceiver<Order>,
    state: watch::Sender<State>,
    lines: Lines,
    grace: Duration,
    remove_at_end: Vec<(OsString, OsString)>,
    /// When the supervisor is taken for stuck.
    stuck_at: Option<Instant>,
    /// Its last word, to be passed on when it is gone itself.
    last_word: Option<Teardown>,
}

impl Driver {
    pub(super) fn launch(
        child: Child,
        pid: u32,
        identity: Option<ProcessIdentity>,
        control: UnixStream,
        spec: &Spec,
    ) -> (watch::Receiver<State>, mpsc::UnboundedSender<Order>) {
        let (state, state_seen) = watch::channel(State::default());
        let (orders_in, orders) = mpsc::unbounded_channel();
        let (reader, writer) = control.into_split();
        let remove_at_end = spec.remove_at_end.iter();
        let driver = Self {
            child,
            pid,
            identity,
            record: spec.live.clone(),
            reader,
            writer: Some(writer),
            orders,
            state,
            lines: Lines::default(),
            grace: spec.grace,
            remove_at_end: remove_at_end
                .map(|file| (file.root.clone().into(), file.below.clone().into()))
                .collect(),
            stuck_at: None,
            last_word: None,
        };
        tokio::spawn(driver.drive());
        (state_seen, orders_in)
    }

    async fn drive(mut self) {
        // Opened before the command runs, for the case that the supervisor is
        // killed and its own list is lost.
        let removals = Removals::prepare(&self.remove_at_end);
        self.serve().await;
        let teardown = if self.reap().await {
            // It ends by itself only when nothing is left.
            self.forget(true);
            self.last_word.take().unwrap_or_default()
        } else {
            let teardown = self.clean_up_after_death(&removals).await;
            self.forget(teardown.is_clean());
            teardown
        };
        self.torn_down(teardown);
    }

    /// Serves both sides until the supervisor closed its end.
    async fn serve(&mut self) {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let stuck_at = self.stuck_at.unwrap_or_else(far_away);
            tokio::select! {
                read = self.reader.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(read) => if self.hear(&buffer[..read]).is_err() {
                        // Not a supervisor's words.
                        self.kill();
                        return;
                    },
                },
                order = self.orders.recv(), if self.writer.is_some() => self.obey(order).await,
                () = tokio::time::sleep_until(stuck_at), if self.stuck_at.is_some() => {
                    self.kill();
                    self.stuck_at = None;
                }
            }
        }
    }

    async fn obey(&mut self, order: Option<Order>) {
        let request = match order {
            Some(Order::Start(job)) => Request::Start(job),
            Some(Order::Stop(grace)) => {
                self.expect_end(grace);
                let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
                Request::Stop { grace_ms }
            }
            None => {
                // The handle was dropped; to the supervisor that is as if we died.
                self.expect_end(self.grace);
                self.writer = None;
                return;
            }
        };
        match (line(&request), &mut self.writer) {
            // A supervisor that is gone shows at the reading side.
            (Ok(line), Some(writer)) => drop(writer.write_all(&line).await),
            (Ok(_), None) => {}
            (Err(error), _) => {
                tracing::error!(%error, "a request to a supervisor has no JSON form");
                self.kill();
            }
        }
    }

    /// From now on the supervisor must come to its end.
    fn expect_end(&mut self, grace: Duration) {
        let at = Instant::now() + grace + STUCK_AFTER;
        self.stuck_at = Some(self.stuck_at.map_or(at, |earlier| earlier.min(at)));
    }

    fn hear(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.lines.push(bytes)?;
        while let Some(report) = self.lines.next()? {
            match report {
                Report::Ready => self.set(|state| state.ready = true),
                Report::Started => {}
                Report::NotStarted { stage, errno } => {
                    self.ended(Exit::NotStarted(StartError { stage, errno }));
                }
                Report::Exited { code } => self.ended(Exit::Code(code)),
                Report::Signalled { signal } => self.ended(Exit::Signal(signal)),
                Report::Gone {
                    leftovers,
                    survivors,
                    not_removed,
                } => {
                    let teardown = Teardown {
                        leftovers,
                        survivors,
                        not_removed: not_removed.into_iter().map(PathBuf::from).collect(),
                    };
                    if !teardown.is_clean() {
                        // It stays while there are survivors, however long.
                        self.stuck_at = None;
                        self.torn_down(teardown.clone());
                    }
                    self.last_word = Some(teardown);
                }
            }
        }
        Ok(())
    }

    fn ended(&mut self, exit: Exit) {
        self.expect_end(self.grace);
        self.set(|state| state.exit = Some(exit));
    }

    fn torn_down(&self, teardown: Teardown) {
        self.set(|state| {
            // A command that was never handed over never ran.
            state.exit.get_or_insert(Exit::SupervisorDied);
            state.teardown = Some(teardown);
        });
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(change);
    }

    /// Ends the supervisor itself: an unreaped child, so it is the one meant.
    fn kill(&mut self) {
        if self.child.start_kill().is_err() {
            tracing::warn!(pid = self.pid, "a supervisor could not be ended");
        }
    }

    /// Returns whether it came to its own end.
    async fn reap(&mut self) -> bool {
        // It closed its side, so it is at its end: but never wait without a bound.
        let status = match tokio::time::timeout(STUCK_AFTER, self.child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                self.kill();
                self.child.wait().await
            }
        };
        status.is_ok_and(|status| status.success())
    }

    /// The supervisor was ended before its work was: its children came here.
    async fn clean_up_after_death(&mut self, removals: &Removals) -> Teardown {
        let grace = self.grace;
        let stopped = tokio::task::spawn_blocking(move || stop_adopted(grace)).await;
        let stopped = match stopped.map_err(io::Error::other).and_then(|result| result) {
            Ok(stopped) => stopped,
            Err(error) => Stopped {
                found: Vec::new(),
                survivors: vec![format!("unknown: {error}")],
            },
        };
        Teardown {
            leftovers: stopped.found,
            survivors: stopped.survivors,
            not_removed: removals.remove().into_iter().map(PathBuf::from).collect(),
        }
    }

    /// Takes the supervisor, which was reaped, out of the records.
    fn forget(&self, clean: bool) {
        if let Ok(pid) = i32::try_from(self.pid) {
            live().remove(pid);
        }
        if let (Some(record), Some(identity), true) = (&self.record, &self.identity, clean) {
            record.closed(identity);
        }
    }
}

fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}
