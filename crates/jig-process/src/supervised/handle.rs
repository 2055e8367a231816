//! The handle on a command below its supervisor.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, watch};

use super::driver::{Driver, Order, State};
use super::registry::live;
use super::spec::{Exit, Program, Spec, Stdin, Teardown};
use crate::fork::{ChildSetup, Leads, set_up};
use crate::host::{Host, SUPERVISOR, become_reaper};
use crate::identity::ProcessIdentity;
use crate::supervisor::{Confinement, Job};

/// How long a new supervisor may take to say that it is one. Only a program
/// that is none ever takes it.
const READY_BOUND: Duration = Duration::from_secs(30);

/// Why a command could not be put below a supervisor. Failures of the command
/// itself are an [`Exit`].
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// The supervisor could not be started.
    #[error("cannot start the supervisor {}", program.display())]
    Spawn {
        /// The host executable.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was started did not behave like a supervisor.
    #[error("{} is not a host of jig's supervisor", program.display())]
    NotASupervisor {
        /// The host executable.
        program: PathBuf,
    },
    /// The supervisor could not be written down, so nothing was run.
    #[error("cannot record the supervisor")]
    Record(#[source] io::Error),
}

/// A command below its supervisor.
///
/// Dropping it stops the command and everything it started, in the
/// background; the supervisor sees to it even when this process ends at once.
/// Must be made and used inside a tokio runtime with I/O and time.
#[derive(Debug)]
pub struct Supervised {
    identity: ProcessIdentity,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    state: watch::Receiver<State>,
    orders: mpsc::UnboundedSender<Order>,
}

impl Supervised {
    /// Starts a supervisor and hands it the command. Returns before the
    /// command runs; whether it could be started is told by
    /// [`Supervised::wait_exit`].
    ///
    /// # Errors
    ///
    /// When there is no supervisor to run it; then nothing was run.
    pub async fn start(host: &Host, spec: Spec) -> Result<Self, SuperviseError> {
        become_reaper();
        let program = host.executable();
        let failed = |source| SuperviseError::Spawn {
            program: program.clone(),
            source,
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let control = tokio::net::UnixStream::from_std(ours).map_err(failed)?;
        let (pid, mut child) = spawn_supervisor(&program, &theirs, &spec.stdin).map_err(failed)?;
        drop(theirs);
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // Our own unreaped child: the pid is its.
        let identity = ProcessIdentity::of(pid);
        let known = identity.as_ref().ok().cloned().flatten();
        // From here on the driver answers for the child, whatever happens.
        let (state, orders) = Driver::launch(child, pid, known, control, &spec);
        let identity = identity
            .and_then(|found| found.ok_or_else(|| io::ErrorKind::NotFound.into()))
            .map_err(failed)?;
        let mut supervised = Self {
            identity,
            stdin: streams.0,
            stdout: streams.1,
            stderr: streams.2,
            state,
            orders,
        };
        supervised.wait_ready(program).await?;
        supervised.hand_over(host, spec)?;
        Ok(supervised)
    }

    async fn wait_ready(&mut self, program: PathBuf) -> Result<(), SuperviseError> {
        let answered = self
            .state
            .wait_for(|state| state.ready || state.teardown.is_some());
        match tokio::time::timeout(READY_BOUND, answered).await {
            Ok(Ok(state)) if state.ready => Ok(()),
            _ => Err(SuperviseError::NotASupervisor { program }),
        }
    }

    fn hand_over(&mut self, host: &Host, mut spec: Spec) -> Result<(), SuperviseError> {
        if let Some(record) = &spec.live {
            record
                .opened(&self.identity)
                .map_err(SuperviseError::Record)?;
        }
        let stdin = std::mem::take(&mut spec.stdin);
        // Without a driver the end is already known.
        let _ = self.orders.send(Order::Start(Box::new(job(host, spec))));
        if let Stdin::Bytes(bytes) = stdin
            && let Some(mut pipe) = self.stdin.take()
        {
            tokio::spawn(async move {
                // A command that does not read it all has its reasons.
                let _ = pipe.write_all(&bytes).await;
                let _ = pipe.shutdown().await;
            });
        }
        Ok(())
    }

    /// Who the supervisor is: what a later jig needs to stop it.
    #[must_use]
    pub const fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// The command's input, once, when it is [`Stdin::Piped`]. Dropping it
    /// ends the input.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// The command's output, once. It ends when no process holds it any more:
    /// after the teardown, unless there are survivors.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// The command's errors, once; ends as its output does.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.stderr.take()
    }

    /// Waits for the end of the command's first process. What it left behind
    /// may still be being stopped. May be dropped and asked again.
    pub async fn wait_exit(&mut self) -> Exit {
        self.wait(|state| state.exit, Exit::SupervisorDied).await
    }

    /// Waits until nothing that the command started is left. May be dropped
    /// and asked again.
    pub async fn wait_gone(&mut self) -> Teardown {
        let lost = Teardown {
            survivors: vec!["unknown: the runtime was shut down".into()],
            ..Teardown::default()
        };
        self.wait(|state| state.teardown.clone(), lost).await
    }

    /// Stops the command and everything it started: TERM, `grace` for the
    /// whole of it, then KILL. Returns as soon as nothing is left. Asked
    /// again, the shorter grace counts.
    pub async fn stop(&mut self, grace: Duration) -> Teardown {
        self.begin_stop(grace);
        self.wait_gone().await
    }

    /// Begins what [`Supervised::stop`] does and returns at once.
    pub fn begin_stop(&self, grace: Duration) {
        // Without a driver the end is already known.
        let _ = self.orders.send(Order::Stop(grace));
    }

    async fn wait<T>(&mut self, get: impl Fn(&State) -> Option<T>, lost: T) -> T {
        match self.state.wait_for(|state| get(state).is_some()).await {
            Ok(state) => get(&state).unwrap_or(lost),
            Err(_) => lost,
        }
    }
}

fn spawn_supervisor(
    program: &Path,
    theirs: &UnixStream,
    stdin: &Stdin,
) -> io::Result<(u32, Child)> {
    let mut command = Command::new(program);
    command
        .arg0("jig-supervisor")
        .args(Host::mode_args(SUPERVISOR))
        .arg(theirs.as_raw_fd().to_string())
        .env_clear()
        .stdin(match stdin {
            Stdin::Empty => Stdio::null(),
            Stdin::Bytes(_) | Stdin::Piped => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    set_up(
        command.as_std_mut(),
        ChildSetup {
            leads: Leads::Session,
            death_signal: None::<Signal>,
            keep: Some(theirs.as_raw_fd()),
            confinement: Confinement::None,
        },
    );
    live().start(|| {
        let child = command.spawn()?;
        let pid = child.id().ok_or(io::ErrorKind::NotFound)?;
        let raw = i32::try_from(pid).map_err(io::Error::other)?;
        Ok((raw, (pid, child)))
    })
}

fn job(host: &Host, spec: Spec) -> Job {
    let (program, first_args) = match spec.program {
        Program::At(path) => (path.into_os_string(), Vec::new()),
        Program::Shell(line) => ("/bin/sh".into(), vec!["-c".into(), line]),
        Program::HostMode(mode) => (
            host.executable_from_supervisor().into_os_string(),
            Host::mode_args(mode).into(),
        ),
    };
    let mut args = first_args;
    args.extend(spec.args);
    Job {
        program,
        args,
        cwd: spec.cwd.into_os_string(),
        env: spec.env.into_iter().collect(),
        remove_at_end: spec
            .remove_at_end
            .into_iter()
            .map(|file| (file.root.into(), file.below.into()))
            .collect(),
        grace_ms: u64::try_from(spec.grace.as_millis()).unwrap_or(u64::MAX),
        confinement: spec.confinement,
    }
}
