//! The scripted agent itself: a process that plays one step and ends.
//!
//! It runs where a real agent would: under the supervisor, in the role's HOME
//! and environment, confined like one. It reads one order from stdin, and its
//! stream goes to stdout. It may do anything its step says; what must not
//! happen is prevented or found by those who watch it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jig_process::hidden_mode;
use jig_protocol::outcome::FailureClass;
use jig_protocol::text;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use serde_json::json;

use crate::script::{End, Mode, Step, Text};
use crate::wire::{Met, Order, Said};

/// The hidden mode that is the agent.
pub(crate) const AGENT_MODE: &str = "scripted-agent";

/// The hidden mode that leaves its session and becomes a shell command.
const DETACHED_MODE: &str = "scripted-detached";

/// How much of a command's output is reported: more than anybody keeps, since
/// only whoever knows the secrets may cut.
const REPORTED_OUTPUT: usize = 1024 * 1024;

/// Plays the scripted agent and exits, when the arguments ask for it; else
/// returns at once.
///
/// A host program calls this first in `main`, after
/// `jig_process::supervisor_main`, before any thread is started.
pub fn scripted_agent_main() {
    if let Some(args) = hidden_mode(DETACHED_MODE) {
        let error = detached(args.first().map_or(OsStr::new(""), |command| command));
        std::process::exit(complain(&error));
    }
    if hidden_mode(AGENT_MODE).is_some() {
        let code = match play(&mut io::stdin().lock(), &mut io::stdout().lock()) {
            Ok(code) => code,
            Err(error) => complain(&error),
        };
        std::process::exit(code);
    }
}

fn complain(error: &io::Error) -> i32 {
    // Nobody is left to tell when stderr is gone too.
    let _ = writeln!(io::stderr(), "scripted agent: {error}");
    70
}

/// Becomes `command` in a session of its own. Stdin is a pipe that whoever
/// started this process watches: it closes when the command has taken over.
fn detached(command: &OsStr) -> io::Error {
    match leave_session() {
        Ok(_closes_at_exec) => shell(command).exec(),
        Err(error) => error,
    }
}

fn leave_session() -> io::Result<OwnedFd> {
    let pipe = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::process::setsid()?;
    Ok(pipe)
}

/// Waits until the other end of the pipe is closed.
fn wait_for_close(pipe: &impl AsFd) -> io::Result<()> {
    let mut watched = [PollFd::new(pipe, PollFlags::empty())];
    loop {
        match rustix::event::poll(&mut watched, None) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn shell(command: &OsStr) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command);
    shell
}

/// Why a step is not played to its end.
enum Halt {
    /// The script does not fit; told to the adapter.
    Fault(String),
    /// The adapter cannot be talked to.
    Lost(io::Error),
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

/// Plays the step that stdin orders. Returns the exit code.
fn play(stdin: &mut dyn BufRead, stdout: &mut dyn Write) -> io::Result<i32> {
    let order: Order = read_line(stdin)?;
    let mut agent = Agent {
        stdin,
        stdout,
        home: PathBuf::from(&order.home),
    };
    agent.say(&Said::Session {
        id: order.session.clone(),
    })?;
    match agent.step(&order) {
        Ok(code) => Ok(code),
        Err(Halt::Fault(message)) => agent.say(&Said::Fault { message }).map(|()| 0),
        Err(Halt::Lost(error)) => Err(error),
    }
}

fn read_line<T: serde::de::DeserializeOwned>(stdin: &mut dyn BufRead) -> io::Result<T> {
    let mut line = String::new();
    stdin.read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

struct Agent<'a> {
    stdin: &'a mut dyn BufRead,
    stdout: &'a mut dyn Write,
    home: PathBuf,
}

impl Agent<'_> {
    fn say(&mut self, said: &Said) -> io::Result<()> {
        serde_json::to_writer(&mut *self.stdout, said)?;
        self.stdout.write_all(b"\n")?;
        self.stdout.flush()
    }

    fn log(
        &mut self,
        log: &str,
        text: String,
        detail: Option<serde_json::Value>,
    ) -> io::Result<()> {
        self.say(&Said::Log {
            log: log.to_owned(),
            text,
            detail,
        })
    }

    fn step(&mut self, order: &Order) -> Result<i32, Halt> {
        let step = &order.step;
        check_prompt(step, &order.prompt)?;
        for barrier in &step.reach.0 {
            self.say(&Said::Reach {
                barrier: barrier.clone(),
            })?;
        }
        for barrier in &step.wait_for.0 {
            self.wait_for(barrier)?;
        }
        self.change_files(step)?;
        if let Some(command) = &step.run {
            self.run(command, step.run_must_succeed)?;
        }
        if let Some(command) = &step.spawn {
            self.spawn(command, step.setsid)?;
        }
        for tool in &step.tools {
            self.say(&Said::Tool {
                name: tool.name.clone(),
                input: tool.input.clone(),
            })?;
        }
        self.talk(step.text.as_ref())?;
        if let Some(delay) = step.delay {
            std::thread::sleep(delay.0);
        }
        Ok(self.end(step)?)
    }

    fn wait_for(&mut self, barrier: &str) -> Result<(), Halt> {
        self.say(&Said::Wait {
            barrier: barrier.to_owned(),
        })?;
        if read_line::<Met>(self.stdin)?.met {
            return Ok(());
        }
        Err(Halt::Fault(format!(
            "barrier `{barrier}` was not reached within {} s",
            jig_protocol::limits::BARRIER_TIMEOUT.as_secs()
        )))
    }

    /// Changes files as told. What the system refuses is reported and the step
    /// goes on: being refused is what many a script is for.
    fn change_files(&mut self, step: &Step) -> io::Result<()> {
        for (path, content) in &step.write {
            let place = self.place(path);
            let done = make_parents(&place).and_then(|()| std::fs::write(&place, content));
            self.note("write", path, done)?;
        }
        for path in &step.delete {
            let done = remove(&self.place(path));
            self.note("delete", path, done)?;
        }
        for (path, target) in &step.symlink {
            let place = self.place(path);
            let done = make_parents(&place).and_then(|()| symlink(target, &place));
            self.note("symlink", path, done)?;
        }
        for (path, Mode(mode)) in &step.chmod {
            let mode = std::fs::Permissions::from_mode(*mode);
            let done = std::fs::set_permissions(self.place(path), mode);
            self.note("chmod", path, done)?;
        }
        Ok(())
    }

    /// A path of the script: `~/x` below HOME, else as it is; a relative one
    /// counts from the work tree, where this process was started.
    fn place(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(below) => self.home.join(below),
            None => PathBuf::from(path),
        }
    }

    fn note(&mut self, act: &str, path: &str, done: io::Result<()>) -> io::Result<()> {
        match done {
            Ok(()) => Ok(()),
            Err(error) => self.log(&format!("{act}_failed"), format!("{path}: {error}"), None),
        }
    }

    fn run(&mut self, command: &str, must_succeed: bool) -> Result<(), Halt> {
        let output = shell(OsStr::new(command))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| {
                Halt::Fault(format!("`run: {command}` could not be started: {error}"))
            })?;
        let said = text::lossy(&output.stdout);
        let code = output.status.code();
        self.log(
            "run",
            format!("`{command}` ended with {}", output.status),
            Some(json!({"exit_code": code, "stdout": text::tail(&said, REPORTED_OUTPUT)})),
        )?;
        if must_succeed && code != Some(0) {
            return Err(Halt::Fault(format!(
                "`run: {command}` must succeed but ended with {}",
                output.status
            )));
        }
        Ok(())
    }

    /// Starts `command` and leaves it alone. It keeps this process's output
    /// streams open, as a careless agent's children do.
    fn spawn(&mut self, command: &str, setsid: bool) -> Result<(), Halt> {
        let mut left = if setsid {
            // This program again, marked as this process was, in the other mode.
            let marker = std::env::args_os().nth(1).unwrap_or_default();
            let mut left = Command::new(std::env::current_exe()?);
            left.arg(marker).arg(DETACHED_MODE).arg(command);
            left
        } else {
            shell(OsStr::new(command))
        };
        let stdin = if setsid {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        let started = left.stdin(stdin).spawn().and_then(|mut child| {
            // Returns with the command running, not with what becomes it.
            let taken_over = child.stdin.take();
            taken_over.map_or(Ok(()), |pipe| wait_for_close(&pipe))?;
            Ok(child.id())
        });
        match started {
            Ok(pid) => Ok(self.log("spawn", format!("`{command}`"), Some(json!({"pid": pid})))?),
            Err(error) => Err(Halt::Fault(format!(
                "`spawn: {command}` could not be started: {error}"
            ))),
        }
    }

    fn talk(&mut self, text: Option<&Text>) -> io::Result<()> {
        match text {
            None => Ok(()),
            Some(Text::Whole(text)) => self.say(&Said::Text { text: text.clone() }),
            Some(Text::Parts(parts)) => parts
                .iter()
                .try_for_each(|part| self.say(&Said::Delta { text: part.clone() })),
        }
    }

    fn end(&mut self, step: &Step) -> io::Result<i32> {
        match (step.end, &step.emit) {
            (End::Crash, _) => {
                rustix::process::kill_process(
                    rustix::process::getpid(),
                    rustix::process::Signal::KILL,
                )?;
            }
            (End::Error, _) => {
                let class = step.error_class.unwrap_or(FailureClass::Other);
                self.result(step, Some(class))?;
            }
            (_, Some(_)) => self.result(step, None)?,
            (_, None) => {}
        }
        match step.end {
            End::Exit(code) => Ok(i32::from(code)),
            End::Hang | End::Crash => hang(),
            End::Ok | End::Error => Ok(0),
        }
    }

    fn result(&mut self, step: &Step, error: Option<FailureClass>) -> io::Result<()> {
        let text = match (&step.emit, error) {
            (Some(emit), _) => emit.text(),
            (None, Some(class)) => format!(
                "the script ends this step with an error ({})",
                class.as_str()
            ),
            (None, None) => String::new(),
        };
        let retry_after_ms = step
            .retry_after
            .map(|wait| u64::try_from(wait.0.as_millis()).unwrap_or(u64::MAX));
        self.say(&Said::Result {
            text,
            usage: step.usage,
            error,
            retry_after_ms,
        })
    }
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

fn check_prompt(step: &Step, prompt: &str) -> Result<(), Halt> {
    if let Some(missing) = step
        .expect
        .0
        .iter()
        .find(|text| !prompt.contains(text.as_str()))
    {
        return Err(Halt::Fault(format!(
            "the prompt lacks the expected text {missing:?}"
        )));
    }
    if let Some(found) = step
        .expect_absent
        .0
        .iter()
        .find(|text| prompt.contains(text.as_str()))
    {
        return Err(Halt::Fault(format!(
            "the prompt has the text {found:?}, which must be absent"
        )));
    }
    Ok(())
}

fn make_parents(place: &Path) -> io::Result<()> {
    place.parent().map_or(Ok(()), std::fs::create_dir_all)
}

/// Removes a file, a link or a whole directory.
fn remove(place: &Path) -> io::Result<()> {
    if std::fs::symlink_metadata(place)?.is_dir() {
        std::fs::remove_dir_all(place)
    } else {
        std::fs::remove_file(place)
    }
}
