//! The loop.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_process::{Host, RemoveAtEnd, Spec, Stdin, StopReason, Supervised, Teardown};
use jig_protocol::outcome::FailureClass;
use jig_protocol::time::{Clock, Monotonic};
use jig_protocol::{limits, text};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::task::JoinSet;

use super::files;
use super::hearing::Hearing;
use super::pipes::{Input, Source};
use crate::dialect::{Dialect, Exit, Invocation};
use crate::runtime::{RuntimeEvent, SendControl, SendEnd, SendReport, SendRequest, Stopped};
use crate::session::Session;

/// The most that is taken from stdout after the process ended. More than a pipe
/// holds; what goes beyond comes from a process that could not be stopped.
const DRAIN_BYTES: usize = 4 * limits::STREAM_LINE_BYTES;

/// Starts one send, sees it through, and has the dialect judge it.
///
/// See the module's page for what "through" means. Dropping the future stops
/// everything the send started.
pub async fn supervise<D: Dialect>(
    host: &Host,
    invocation: Invocation,
    dialect: D,
    session: &mut Session,
    request: SendRequest,
    control: SendControl,
) -> SendReport {
    let private = invocation.private_files.clone();
    if let Err((path, error)) = files::write(&request.home, &private) {
        return SendReport::not_started(
            FailureClass::Other,
            format!("cannot write {}: {error}", path.display()),
        );
    }
    let stdin = invocation.stdin.clone();
    let keep_stdin = invocation.keep_stdin;
    let spec = spec(invocation, &request, &control);
    let child = match Supervised::start(host, spec).await {
        Ok(child) => child,
        Err(error) => {
            files::remove(&request.home, &private);
            return SendReport::not_started(FailureClass::Other, text::with_causes(&error));
        }
    };
    session.sends += 1;
    let mut attend = Attend::new(child, dialect, control, Input::new(stdin, keep_stdin));
    let ended = attend.until_it_ends().await;
    attend.finish(ended, session).await
}

/// What the supervisor process is told.
fn spec(invocation: Invocation, request: &SendRequest, control: &SendControl) -> Spec {
    let mut env = request.env.clone();
    if env.get("PWD").is_none() {
        env.set("PWD", &request.work_tree);
    }
    for (name, value) in invocation.env {
        env.set(name, value);
    }
    let below = |path: &PathBuf| path.strip_prefix(&request.home).unwrap_or(path).to_owned();
    let private = invocation
        .private_files
        .iter()
        .map(|(name, _)| PathBuf::from(name));
    let mut spec = Spec::new(invocation.program, &request.work_tree, env)
        .args(invocation.args)
        .stdin(Stdin::Piped);
    spec.remove_at_end = request
        .remove_at_end
        .iter()
        .map(below)
        .chain(private)
        .map(|below| RemoveAtEnd {
            root: request.home.clone(),
            below,
        })
        .collect();
    spec.confinement = request.confinement.clone();
    spec.live = control.live.clone();
    spec
}

/// Why the attending came to an end.
enum Ended {
    /// The process ended by itself.
    Exited,
    /// The final result was there, the process stayed.
    Lingered,
    /// What the dialect waited for did not come in time.
    GivenUp,
    /// A clock or a signal.
    Stopped(Stopped),
}

/// What one turn of the loop brought.
enum Turn {
    Ended(Ended),
    Stdout(usize),
    Stderr(usize),
    Written(usize),
    Replied(Vec<u8>),
    Went,
}

struct Attend<D> {
    child: Supervised,
    hearing: Hearing<D>,
    control: SendControl,
    stdout: Source<ChildStdout>,
    stderr: Source<ChildStderr>,
    input: Input,
    replies: JoinSet<Vec<u8>>,
    /// When the last byte came, or the consumer caught up.
    last_sign: Monotonic,
    /// Until when the dialect waits for something.
    within: Option<Monotonic>,
}

impl<D: Dialect> Attend<D> {
    fn new(mut child: Supervised, dialect: D, control: SendControl, mut input: Input) -> Self {
        let filter = control.stderr_filter.as_ref().map(|make| make());
        let mut hearing = Hearing::new(dialect, filter);
        hearing.pending.push_back(RuntimeEvent::Started {
            process: child.identity().clone(),
        });
        input.pipe = child.take_stdin();
        hearing.begin();
        let mut attend = Self {
            stdout: Source::new(child.take_stdout()),
            stderr: Source::new(child.take_stderr()),
            last_sign: control.deadline.clock().monotonic(),
            within: None,
            child,
            hearing,
            control,
            input,
            replies: JoinSet::new(),
        };
        attend.follow();
        attend
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(self.control.deadline.clock())
    }

    /// Attends to the running process.
    async fn until_it_ends(&mut self) -> Ended {
        loop {
            match self.turn().await {
                Turn::Ended(ended) => return self.settle(ended).await,
                other => self.take_in(other),
            }
        }
    }

    /// The next thing that happens. The order is the order of precedence; the
    /// deadline comes before the streams so that a flood cannot hold it off.
    async fn turn(&mut self) -> Turn {
        let clock = self.clock();
        let behind = !self.hearing.pending.is_empty();
        let quiet = self.quiet_limit(behind);
        tokio::select! {
            biased;
            _ = self.child.wait_exit() => Turn::Ended(Ended::Exited),
            reason = self.control.deadline.wait() => Turn::Ended(Ended::Stopped(reason.into())),
            () = deliver_one(&self.control, &mut self.hearing), if behind => Turn::Went,
            () = at(&clock, self.within) => Turn::Ended(match self.hearing.is_terminal() {
                true => Ended::Lingered,
                false => Ended::GivenUp,
            }),
            read = self.stdout.read(), if !behind && self.stdout.is_open() => Turn::Stdout(read),
            read = self.stderr.read(), if self.stderr.is_open() => Turn::Stderr(read),
            wrote = self.input.write(), if self.input.is_waiting() => Turn::Written(wrote),
            Some(Ok(reply)) = self.replies.join_next() => Turn::Replied(reply),
            () = sleep(&clock, self.last_sign, quiet) => Turn::Ended(match self.hearing.is_terminal() {
                true => Ended::Lingered,
                false => Ended::Stopped(StopReason::Silence.into()),
            }),
        }
    }

    /// How long there may be nothing at all; `None` while that means nothing.
    fn quiet_limit(&self, behind: bool) -> Option<Duration> {
        if behind || self.hearing.has_open_tool() {
            None
        } else if self.hearing.is_terminal() {
            Some(limits::DRAIN_GRACE)
        } else {
            Some(self.control.silence)
        }
    }

    fn take_in(&mut self, turn: Turn) {
        self.last_sign = self.control.deadline.clock().monotonic();
        match turn {
            Turn::Stdout(read) => self.heard_stdout(read),
            Turn::Stderr(read) => self.hearing.stderr(self.stderr.bytes(read)),
            Turn::Written(wrote) => self.input.wrote(wrote),
            Turn::Replied(reply) => self.input.push(reply),
            Turn::Went | Turn::Ended(_) => {}
        }
        self.follow();
    }

    /// Does what the dialect asked for.
    fn follow(&mut self) {
        for reply in self.hearing.replies.drain(..) {
            self.replies.spawn(reply);
        }
        self.input.push(std::mem::take(&mut self.hearing.writes));
        if self.hearing.close_input {
            self.input.finish();
        }
        if let Some(time) = self.hearing.within.take() {
            let now = self.control.deadline.clock().monotonic();
            self.within = time.map(|time| now.saturating_add(time));
        }
    }

    fn heard_stdout(&mut self, read: usize) {
        if read == 0 {
            self.hearing.stdout_ended();
        } else {
            self.hearing.stdout(self.stdout.bytes(read));
        }
    }

    /// A stop gives way to a final result that is there already, heard or
    /// still in the pipe.
    async fn settle(&mut self, ended: Ended) -> Ended {
        if !matches!(ended, Ended::Stopped(_) | Ended::GivenUp) {
            return ended;
        }
        let mut left = DRAIN_BYTES;
        while !self.hearing.is_terminal() && self.stdout.is_open() && left > 0 {
            let read = tokio::select! {
                biased;
                read = self.stdout.read() => read,
                () = std::future::ready(()) => break,
            };
            self.heard_stdout(read);
            left = left.saturating_sub(read);
        }
        if self.hearing.is_terminal() {
            Ended::Lingered
        } else {
            ended
        }
    }

    /// Stops what still runs, drains the streams, delivers, judges.
    async fn finish(mut self, ended: Ended, session: &mut Session) -> SendReport {
        self.replies.abort_all();
        self.input = Input::default();
        if !matches!(ended, Ended::Exited) {
            self.child.begin_stop(limits::STOP_GRACE);
        }
        let teardown = self.drain().await;
        // Known by now in every case; asked first it would hold the drain up.
        let exit = self.child.wait_exit().await;
        self.deliver_rest().await;
        if let jig_process::Exit::NotStarted(error) = exit {
            session.sends -= 1;
            return SendReport {
                not_removed: teardown.not_removed,
                ..SendReport::not_started(
                    FailureClass::Other,
                    format!("the agent's program did not start: {error}"),
                )
            };
        }
        self.report(ended, exit, teardown, session)
    }

    /// Reads on while everything is being stopped, then for a bounded time to
    /// the streams' ends. The consumer holds nothing up here: what a dead
    /// process left in its pipes is little.
    async fn drain(&mut self) -> Teardown {
        let clock = self.clock();
        let mut left = DRAIN_BYTES;
        let mut gone: Option<(Teardown, Monotonic)> = None;
        loop {
            let open = left > 0 && self.stdout.is_open();
            let until = gone.as_ref().map(|(_, at)| *at);
            if gone.is_some() && !open && !self.stderr.is_open() {
                break;
            }
            let behind = !self.hearing.pending.is_empty();
            tokio::select! {
                biased;
                teardown = self.child.wait_gone(), if gone.is_none() => {
                    gone = Some((teardown, clock.monotonic()));
                }
                () = deliver_one(&self.control, &mut self.hearing), if behind => {}
                read = self.stdout.read(), if open => {
                    self.heard_stdout(read);
                    left = left.saturating_sub(read);
                }
                read = self.stderr.read(), if self.stderr.is_open() => {
                    self.hearing.stderr(self.stderr.bytes(read));
                }
                () = sleep_after(&clock, until, limits::DRAIN_GRACE) => break,
            }
        }
        if self.stdout.is_open() {
            self.hearing.stdout_ended();
        }
        gone.map(|(teardown, _)| teardown).unwrap_or_default()
    }

    /// Waits for the consumer. It has the send's own deadline and a grace after
    /// it; a consumer that is gone takes nothing.
    async fn deliver_rest(&mut self) {
        let clock = self.clock();
        let deadline = self.control.deadline.clone();
        let too_late = async {
            deadline.wait().await;
            clock
                .sleep_until(clock.monotonic().saturating_add(limits::DRAIN_GRACE))
                .await;
        };
        tokio::pin!(too_late);
        while !self.hearing.pending.is_empty() {
            tokio::select! {
                biased;
                () = deliver_one(&self.control, &mut self.hearing) => {}
                () = &mut too_late => {
                    let lost = self.hearing.pending.len();
                    tracing::warn!(lost, "nobody took the last events of a send");
                    self.hearing.pending.clear();
                }
            }
        }
    }

    fn report(
        &mut self,
        ended: Ended,
        exit: jig_process::Exit,
        teardown: Teardown,
        session: &mut Session,
    ) -> SendReport {
        let exit = match (&ended, exit) {
            (Ended::Lingered, _) => Exit::EndedAfterResult,
            (Ended::GivenUp, _) => Exit::GivenUp,
            (_, jig_process::Exit::Code(code)) => Exit::Code(code),
            (_, jig_process::Exit::Signal(signal)) => Exit::Signal(signal),
            (_, jig_process::Exit::NotStarted(_) | jig_process::Exit::SupervisorDied) => {
                Exit::Unknown
            }
        };
        let verdict = self.hearing.end(session, exit);
        if verdict.usage.is_none() {
            session.ledger.silent_send();
        }
        let end = match (ended, verdict.outcome) {
            (_, Ok(text)) => SendEnd::Answered { text },
            (Ended::Stopped(reason), Err(_)) => SendEnd::Stopped(reason),
            (_, Err(failure)) => SendEnd::Failed {
                class: failure.class,
                message: failure.message,
                hint: failure.hint,
                retry_after: failure.retry_after,
                exit_code: exit.code(),
            },
        };
        SendReport {
            end,
            usage: verdict.usage,
            leftovers: teardown.leftovers,
            survivors: teardown.survivors,
            not_removed: teardown.not_removed,
        }
    }
}

/// Hands the oldest event to the consumer. May be dropped: the event stays.
async fn deliver_one<D>(control: &SendControl, hearing: &mut Hearing<D>) {
    match control.events.reserve().await {
        Ok(permit) => {
            if let Some(event) = hearing.pending.pop_front() {
                permit.send(event);
            }
        }
        // Nobody listens any more; the send goes on.
        Err(_) => hearing.pending.clear(),
    }
}

/// Ready `after` has passed since `since`; never when there is no such time.
async fn sleep(clock: &Arc<dyn Clock>, since: Monotonic, after: Option<Duration>) {
    match after {
        Some(after) => clock.sleep_until(since.saturating_add(after)).await,
        None => std::future::pending().await,
    }
}

/// Ready at that moment; never when there is none.
async fn at(clock: &Arc<dyn Clock>, moment: Option<Monotonic>) {
    match moment {
        Some(moment) => clock.sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

async fn sleep_after(clock: &Arc<dyn Clock>, since: Option<Monotonic>, after: Duration) {
    match since {
        Some(since) => clock.sleep_until(since.saturating_add(after)).await,
        None => std::future::pending().await,
    }
}
