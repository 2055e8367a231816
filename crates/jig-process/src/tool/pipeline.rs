//! Tools joined by pipes, served by one loop until all have ended.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use jig_protocol::limits;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::spawn::spawn;
use super::spec::{Tool, ToolError, ToolExit, ToolOutput, ToolStdin, ToolStdout};
use crate::capture::Tail;
use crate::deadline::StopReason;
use crate::identity::GroupId;
use crate::poll::poll_for;

const CHUNK: usize = 64 * 1024;

/// One tool of the pipeline.
struct Member {
    program: PathBuf,
    child: Child,
    pid: Pid,
    group: GroupId,
    #[cfg(target_os = "linux")]
    pidfd: OwnedFd,
    stderr: Option<ChildStderr>,
    tail: Tail,
    /// Its exit was seen. It is reaped only at the very end, so that its
    /// group's number stays its own.
    exited: bool,
    reaped: bool,
}

/// Bytes on their way into the first tool.
struct Feed {
    pipe: ChildStdin,
    bytes: Vec<u8>,
    written: usize,
}

/// What comes out of the last tool.
struct Output {
    pipe: ChildStdout,
    to: ToolStdout,
    captured: Vec<u8>,
}

pub(super) struct Pipeline {
    members: Vec<Member>,
    feed: Option<Feed>,
    output: Option<Output>,
    captured: Vec<u8>,
    timeout: Duration,
    ends_at: Instant,
    /// Reads as ended when the tools are to be stopped.
    cancel: Option<OwnedFd>,
    /// Why they are being stopped, and when TERM has had its time.
    stopping: Option<(ToolError, Instant)>,
    /// How long streams are read after all have exited.
    drain_until: Option<Instant>,
}

impl Pipeline {
    pub(super) fn run(
        tools: Vec<Tool>,
        cancel: Option<OwnedFd>,
    ) -> Result<Vec<ToolOutput>, ToolError> {
        let timeout = tools.iter().map(|t| t.timeout).max().unwrap_or_default();
        let mut pipeline = Self {
            members: Vec::new(),
            feed: None,
            output: None,
            captured: Vec::new(),
            timeout,
            ends_at: Instant::now() + timeout,
            cancel,
            stopping: None,
            drain_until: None,
        };
        pipeline.start(tools)?;
        while !pipeline.step()? {}
        pipeline.finish()
    }

    fn start(&mut self, tools: Vec<Tool>) -> Result<(), ToolError> {
        let last = tools.len().saturating_sub(1);
        let mut previous: Option<ChildStdout> = None;
        for (place, tool) in tools.into_iter().enumerate() {
            let program = tool.program.clone();
            previous = self
                .start_one(tool, previous, place == last)
                .map_err(|(cwd, source)| ToolError::Start {
                    program,
                    cwd,
                    source,
                })?;
        }
        Ok(())
    }

    /// Starts one tool; returns its output unless it is the last.
    fn start_one(
        &mut self,
        tool: Tool,
        input: Option<ChildStdout>,
        last: bool,
    ) -> Result<Option<ChildStdout>, (PathBuf, io::Error)> {
        let cwd = tool.cwd.clone();
        let failed = |error: io::Error| (cwd.clone(), error);
        let mut command = Command::new(&tool.program);
        command
            .args(&tool.args)
            .current_dir(&tool.cwd)
            .env_clear()
            .envs(tool.env.iter())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut bytes = None;
        match (input, tool.stdin) {
            (Some(previous), _) => command.stdin(Stdio::from(previous)),
            (None, ToolStdin::Empty) => command.stdin(Stdio::null()),
            (None, ToolStdin::File(file)) => command.stdin(Stdio::from(file)),
            (None, ToolStdin::Bytes(given)) => {
                bytes = Some(given);
                command.stdin(Stdio::piped())
            }
        };
        let mut to = Some(tool.stdout);
        if last
            && let Some(ToolStdout::File(file)) = to.take_if(|t| matches!(t, ToolStdout::File(_)))
        {
            command.stdout(Stdio::from(file));
        }
        let mut child = spawn(command).map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let member = Member::new(tool.program, child, tool.stderr_tail).map_err(failed)?;
        self.members.push(member);
        if let (Some(pipe), Some(bytes)) = (stdin, bytes) {
            without_blocking(&pipe).map_err(failed)?;
            self.feed = Some(Feed {
                pipe,
                bytes,
                written: 0,
            });
        }
        match (stdout, to) {
            (Some(pipe), Some(to)) if last => {
                without_blocking(&pipe).map_err(failed)?;
                self.output = Some(Output {
                    pipe,
                    to,
                    captured: Vec::new(),
                });
                Ok(None)
            }
            (stdout, _) => Ok(stdout),
        }
    }

    /// Waits for the next thing to happen and handles all that did. Returns
    /// whether everything is over.
    fn step(&mut self) -> Result<bool, ToolError> {
        self.wait()?;
        if let Err(error) = self.serve() {
            self.stop(error);
        }
        for member in &mut self.members {
            member.look()?;
        }
        let all_exited = self.members.iter().all(|m| m.exited);
        let now = Instant::now();
        if all_exited {
            return Ok(self.is_drained(now));
        }
        if now >= self.ends_at {
            let error = ToolError::TimedOut {
                program: self.program(),
                after: self.timeout,
            };
            self.stop(error);
        }
        if self.cancelled() {
            let error = ToolError::Stopped {
                program: self.program(),
                reason: StopReason::Cancelled,
            };
            self.stop(error);
        }
        if let Some((_, kill_at)) = self.stopping
            && now >= kill_at
        {
            self.signal_all(Signal::KILL);
        }
        Ok(false)
    }

    /// All tools have exited: whether their streams need no more reading.
    fn is_drained(&mut self, now: Instant) -> bool {
        let until = match self.drain_until {
            Some(until) => until,
            None => {
                // Whatever they left in their groups ends now.
                self.signal_all(Signal::KILL);
                *self.drain_until.insert(now + limits::DRAIN_GRACE)
            }
        };
        let closed = self.output.is_none() && self.members.iter().all(|m| m.stderr.is_none());
        closed || self.stopping.is_some() || now >= until
    }

    fn wait(&self) -> Result<(), ToolError> {
        let mut watched = Vec::new();
        for member in &self.members {
            #[cfg(target_os = "linux")]
            if !member.exited {
                watched.push(PollFd::new(&member.pidfd, PollFlags::IN));
            }
            if let Some(stderr) = &member.stderr {
                watched.push(PollFd::new(stderr, PollFlags::IN));
            }
        }
        if let Some(output) = &self.output {
            watched.push(PollFd::new(&output.pipe, PollFlags::IN));
        }
        if let Some(feed) = &self.feed {
            watched.push(PollFd::new(&feed.pipe, PollFlags::OUT));
        }
        if let Some(cancel) = &self.cancel
            && self.stopping.is_none()
        {
            watched.push(PollFd::new(cancel, PollFlags::IN));
        }
        let until = match (self.drain_until, &self.stopping) {
            (Some(until), _) => until,
            (None, Some((_, kill_at))) if Instant::now() < *kill_at => *kill_at,
            // KILL was sent: nothing left but to wait for the exits.
            (None, Some(_)) => Instant::now() + Duration::from_secs(1),
            (None, None) => self.ends_at,
        };
        let bound = until.saturating_duration_since(Instant::now());
        poll_for(&mut watched, bound).map_err(|source| self.failed("wait for", source))
    }

    fn serve(&mut self) -> Result<(), ToolError> {
        let mut buffer = vec![0; CHUNK];
        if let Some(feed) = &mut self.feed
            && feed.push()
        {
            self.feed = None;
        }
        for member in &mut self.members {
            let Some(stderr) = &mut member.stderr else {
                continue;
            };
            match read_some(stderr, &mut buffer) {
                Ok(Some(0)) | Err(_) => member.stderr = None,
                Ok(Some(read)) => member.tail.push(&buffer[..read]),
                Ok(None) => {}
            }
        }
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        let last = self.members.last().map(|m| m.program.clone());
        let program = last.unwrap_or_default();
        match read_some(&mut output.pipe, &mut buffer) {
            Ok(None) => Ok(()),
            Ok(Some(0)) => {
                self.close_output();
                Ok(())
            }
            Ok(Some(read)) => output.take(&buffer[..read], program),
            Err(source) => {
                self.close_output();
                Err(ToolError::Io {
                    program,
                    act: "read the output of",
                    source,
                })
            }
        }
    }

    fn close_output(&mut self) {
        if let Some(output) = self.output.take() {
            self.captured = output.captured;
        }
    }

    /// Begins to stop all tools, unless that has begun.
    fn stop(&mut self, error: ToolError) {
        if self.stopping.is_none() {
            self.feed = None;
            self.close_output();
            self.signal_all(Signal::TERM);
            self.stopping = Some((error, Instant::now() + limits::STOP_GRACE));
        }
    }

    fn signal_all(&self, signal: Signal) {
        for member in self.members.iter().filter(|m| !m.reaped) {
            // Gone already, which is what is wanted; or somebody else's by
            // set-uid, which the wait for its exit will show.
            let _ = member.group.signal(signal);
        }
    }

    fn cancelled(&self) -> bool {
        let Some(cancel) = &self.cancel else {
            return false;
        };
        let mut watched = [PollFd::new(cancel, PollFlags::IN)];
        poll_for(&mut watched, Duration::ZERO).is_ok() && !watched[0].revents().is_empty()
    }

    fn program(&self) -> PathBuf {
        let first = self.members.first();
        first.map(|m| m.program.clone()).unwrap_or_default()
    }

    fn failed(&self, act: &'static str, source: io::Error) -> ToolError {
        ToolError::Io {
            program: self.program(),
            act,
            source,
        }
    }

    fn finish(mut self) -> Result<Vec<ToolOutput>, ToolError> {
        self.close_output();
        let captured = std::mem::take(&mut self.captured);
        let mut outputs = Vec::new();
        for member in &mut self.members {
            outputs.push(member.reap()?);
        }
        if let Some((error, _)) = self.stopping.take() {
            return Err(error);
        }
        if let Some(last) = outputs.last_mut() {
            last.stdout = captured;
        }
        Ok(outputs)
    }
}

impl Drop for Pipeline {
    /// Only after an error in the middle is there anything left to stop.
    fn drop(&mut self) {
        self.signal_all(Signal::KILL);
        for member in self.members.iter_mut().filter(|m| !m.reaped) {
            let _ = member.reap();
        }
    }
}

impl Member {
    fn new(program: PathBuf, mut child: Child, stderr_tail: usize) -> io::Result<Self> {
        let stderr = child.stderr.take();
        if let Some(stderr) = &stderr {
            without_blocking(stderr)?;
        }
        let group = GroupId::new(i64::from(child.id())).map_err(io::Error::other)?;
        Ok(Self {
            program,
            pid: group.pid(),
            group,
            // Our own unreaped child: the number is its.
            #[cfg(target_os = "linux")]
            pidfd: rustix::process::pidfd_open(group.pid(), rustix::process::PidfdFlags::empty())?,
            child,
            stderr,
            tail: Tail::new(stderr_tail),
            exited: false,
            reaped: false,
        })
    }

    /// Looks whether it exited, without reaping it.
    fn look(&mut self) -> Result<(), ToolError> {
        if self.exited {
            return Ok(());
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.pid), options) {
            Ok(status) => {
                self.exited = status.is_some();
                Ok(())
            }
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(self.wait_failed(error.into())),
        }
    }

    fn reap(&mut self) -> Result<ToolOutput, ToolError> {
        let status = self.child.wait().map_err(|e| self.wait_failed(e))?;
        self.reaped = true;
        Ok(ToolOutput {
            exit: ToolExit::of(status),
            stdout: Vec::new(),
            stderr: self.tail.text(),
        })
    }

    fn wait_failed(&self, source: io::Error) -> ToolError {
        ToolError::Io {
            program: self.program.clone(),
            act: "wait for",
            source,
        }
    }
}

impl Feed {
    /// Writes what fits. Returns whether there is nothing more to write, which
    /// is also so when nobody reads any more.
    fn push(&mut self) -> bool {
        while self.written < self.bytes.len() {
            match self.pipe.write(&self.bytes[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
            }
        }
        true
    }
}

impl Output {
    fn take(&mut self, bytes: &[u8], program: PathBuf) -> Result<(), ToolError> {
        match &mut self.to {
            ToolStdout::Capture { max } => {
                if self.captured.len() + bytes.len() > *max {
                    return Err(ToolError::TooMuchOutput {
                        program,
                        limit: *max,
                    });
                }
                self.captured.extend_from_slice(bytes);
                Ok(())
            }
            ToolStdout::Sink(sink) => sink(bytes).map_err(|source| ToolError::Io {
                program,
                act: "use the output of",
                source,
            }),
            // The tool writes there itself.
            ToolStdout::File(_) => Ok(()),
        }
    }
}

/// Reads what is there; `None` when nothing is yet.
fn read_some(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match from.read(buffer) {
        Ok(read) => Ok(Some(read)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn without_blocking(pipe: &impl AsFd) -> io::Result<()> {
    rustix::io::ioctl_fionbio(pipe, true).map_err(io::Error::from)
}
