//! The supervisor's life: take a job, run it, end everything, report.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal};

use super::family::Below;
use super::ladder::{Family, stop_family};
use super::remove::Removals;
use super::signals::Signals;
use super::wire::{Job, Lines, Report, Request, line};
use crate::fork::{ChildSetup, Leads, set_up};
use crate::poll::poll_for;
use crate::supervised::StartStage;
use crate::table::Entry;

/// Longest wait without a look; nothing depends on it.
const LONG: Duration = Duration::from_secs(3600);

/// Between two tries to end what could not be ended.
const RETRY: Duration = Duration::from_secs(1);

/// Runs one job from `control` to its end.
pub(crate) fn run(control: UnixStream) -> io::Result<()> {
    let mut supervisor = Supervisor {
        control,
        connected: true,
        lines: Lines::default(),
        signals: Signals::open()?,
        below: Below::new(),
        exit_reported: false,
        stop: None,
    };
    supervisor.report(&Report::Ready);
    let Some(job) = supervisor.take_job()? else {
        return Ok(());
    };
    let removals = Removals::prepare(&job.remove_at_end);
    match start(&job) {
        Ok(command) => {
            supervisor.below.started(command);
            release_stdio()?;
            supervisor.report(&Report::Started);
        }
        Err((stage, error)) => {
            release_stdio()?;
            let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
            supervisor.report(&Report::NotStarted { stage, errno });
            supervisor.exit_reported = true;
            supervisor.stop = Some(Duration::ZERO);
        }
    }
    let grace = supervisor.run_command(Duration::from_millis(job.grace_ms))?;
    supervisor.end(grace, &removals)
}

struct Supervisor {
    control: UnixStream,
    /// Whether jig still holds the other end.
    connected: bool,
    lines: Lines,
    signals: Signals,
    below: Below,
    exit_reported: bool,
    /// The grace of a stop that was asked for.
    stop: Option<Duration>,
}

impl Supervisor {
    /// Waits for the job; `None` when jig went away instead.
    fn take_job(&mut self) -> io::Result<Option<Box<Job>>> {
        loop {
            match self.lines.next()? {
                Some(Request::Start(job)) => return Ok(Some(job)),
                Some(Request::Stop { .. }) => return Ok(None),
                None => {}
            }
            if !self.connected || self.stop.is_some() {
                return Ok(None);
            }
            self.listen(LONG, Duration::ZERO, false)?;
        }
    }

    /// Waits until the command ended or must end; returns the grace for what
    /// is left of it.
    fn run_command(&mut self, grace: Duration) -> io::Result<Duration> {
        loop {
            self.look()?;
            if let Some(asked) = self.stop {
                return Ok(asked);
            }
            if self.below.ended.is_some() {
                return Ok(grace);
            }
            self.listen(LONG, grace, true)?;
        }
    }

    /// Ends everything, removes what must not stay, says so, and stays until
    /// nothing is left.
    fn end(&mut self, grace: Duration, removals: &Removals) -> io::Result<()> {
        self.stop = None;
        let stopped = stop_family(self, grace)?;
        let stuck = !stopped.survivors.is_empty();
        self.report(&Report::Gone {
            leftovers: stopped.found,
            survivors: stopped.survivors,
            not_removed: removals.remove(),
        });
        if stuck {
            while !stop_family(self, Duration::ZERO)?.survivors.is_empty() {
                self.listen(RETRY, Duration::ZERO, false)?;
            }
        }
        Ok(())
    }

    /// Reaps, and reports the command's end once. Returns whether no child is
    /// left.
    fn look(&mut self) -> io::Result<bool> {
        let alone = self.below.reap()?;
        if let Some(status) = self.below.ended
            && !self.exit_reported
        {
            self.exit_reported = true;
            self.report(&match status.exit_status() {
                Some(code) => Report::Exited { code },
                None => Report::Signalled {
                    signal: status.terminating_signal().unwrap_or(0),
                },
            });
        }
        Ok(alone)
    }

    /// Waits for a signal, or a word from jig. Losing jig, and signals that
    /// end programs, ask for a stop with `grace`.
    fn listen(&mut self, bound: Duration, grace: Duration, parse: bool) -> io::Result<()> {
        let spoken = {
            let mut watched = Vec::new();
            if self.connected {
                watched.push(PollFd::new(&self.control, PollFlags::IN));
            }
            if let Some(signals) = self.signals.descriptor() {
                watched.push(PollFd::from_borrowed_fd(signals, PollFlags::IN));
            }
            poll_for(&mut watched, bound)?;
            self.connected && !watched[0].revents().is_empty()
        };
        if self.signals.take()? {
            self.ask(grace);
        }
        if spoken {
            self.hear(grace)?;
        }
        while parse && let Some(request) = self.lines.next()? {
            if let Request::Stop { grace_ms } = request {
                self.ask(Duration::from_millis(grace_ms));
            }
        }
        Ok(())
    }

    fn hear(&mut self, grace: Duration) -> io::Result<()> {
        let mut buffer = [0; 64 * 1024];
        match self.control.read(&mut buffer) {
            Ok(0) => {
                self.connected = false;
                self.ask(grace);
                Ok(())
            }
            Ok(read) => self.lines.push(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(_) => {
                // Reset: jig is gone just as well.
                self.connected = false;
                self.ask(grace);
                Ok(())
            }
        }
    }

    /// Asks for a stop; the shortest grace wins.
    fn ask(&mut self, grace: Duration) {
        self.stop = Some(self.stop.map_or(grace, |asked| asked.min(grace)));
    }

    fn report(&mut self, report: &Report) {
        // Without jig there is nobody to tell; the work goes on all the same.
        if let Ok(line) = line(report) {
            let _ = self.control.write_all(&line);
        }
    }
}

impl Family for Supervisor {
    fn members(&mut self) -> io::Result<Vec<Entry>> {
        self.below.members()
    }

    fn is_gone(&mut self) -> io::Result<bool> {
        self.look()
    }

    fn wait(&mut self, bound: Duration) -> io::Result<Option<Duration>> {
        // Losing jig while stopping changes nothing: the grace goes on.
        self.listen(bound, LONG, true)?;
        Ok(self.stop.take())
    }
}

/// Starts the command.
fn start(job: &Job) -> Result<Pid, (StartStage, io::Error)> {
    // Done here rather than in the child, so that its failure has a name.
    std::env::set_current_dir(Path::new(&job.cwd)).map_err(|e| (StartStage::Directory, e))?;
    let started = spawn(job);
    // A supervisor must not hold the work tree.
    let _ = std::env::set_current_dir("/");
    started.map_err(|error| (StartStage::Exec, error))
}

fn spawn(job: &Job) -> io::Result<Pid> {
    let mut command = Command::new(&job.program);
    command
        .args(&job.args)
        .env_clear()
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit());
    set_up(
        &mut command,
        ChildSetup {
            leads: Leads::Group,
            death_signal: Some(Signal::KILL),
            keep: None,
            confinement: job.confinement.clone(),
        },
    );
    let child = command.spawn()?;
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("a child has no pid"))
}

/// Lets go of the command's streams: they end when the command's own copies do.
fn release_stdio() -> io::Result<()> {
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(null.as_fd())?;
    rustix::stdio::dup2_stdout(null.as_fd())?;
    rustix::stdio::dup2_stderr(null.as_fd())?;
    Ok(())
}
