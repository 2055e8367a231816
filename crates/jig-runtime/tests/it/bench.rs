//! A place to send from: a HOME, a work tree, a dialect that plain shell
//! scripts can speak.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_protocol::definition::OutputMode;
use jig_protocol::outcome::FailureClass;
use jig_protocol::time::Clock;
use jig_runtime::dialect::{Dialect, Exit, Heard, Verdict};
use jig_runtime::failure::{self, Failure};
use jig_runtime::{
    Confinement, Deadline, Environment, Invocation, Program, RuntimeEvent, SendControl, SendReport,
    SendRequest, Session, line_stream, supervise,
};
use tokio::sync::mpsc;

/// `text X`, `open X`, `close X`, `ask`, `write X`, `shut`, `within SECONDS`,
/// `result X`, `error X`; all else is no line of this dialect.
#[derive(Default)]
pub(crate) struct Words {
    last: Option<Result<String, Failure>>,
    /// What `ask` is answered with.
    reply: Option<String>,
    /// Within what the first `within` has to come.
    first: Option<Duration>,
}

impl Words {
    pub(crate) fn waiting(first: Duration) -> Self {
        Self {
            first: Some(first),
            ..Self::default()
        }
    }

    pub(crate) fn replying(reply: &str) -> Self {
        Self {
            reply: Some(reply.to_owned()),
            ..Self::default()
        }
    }
}

impl Dialect for Words {
    fn begin(&mut self) -> Vec<Heard> {
        self.first
            .map(|time| Heard::Within(Some(time)))
            .into_iter()
            .collect()
    }

    fn line(&mut self, line: &[u8]) -> Vec<Heard> {
        let text = String::from_utf8_lossy(line).into_owned();
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let rest = rest.to_owned();
        vec![match word {
            "text" => Heard::Event(RuntimeEvent::Text { text: rest }),
            "open" => Heard::ToolOpened(rest),
            "close" => Heard::ToolClosed(rest),
            "ask" => {
                let reply = self.reply.clone().unwrap_or_default();
                Heard::Reply(Box::pin(async move {
                    tokio::task::yield_now().await;
                    format!("{reply}\n").into_bytes()
                }))
            }
            "write" => Heard::Write(format!("{rest}\n").into_bytes()),
            "shut" => Heard::CloseInput,
            "within" => Heard::Within(rest.parse().ok().map(Duration::from_secs)),
            "result" => {
                self.last = Some(Ok(rest));
                Heard::Terminal
            }
            "error" => {
                self.last = Some(Err(Failure::new(FailureClass::Overloaded, rest)));
                Heard::Terminal
            }
            _ => Heard::Event(line_stream::unparsed(line)),
        }]
    }

    fn end(&mut self, session: &mut Session, exit: Exit, stderr: &str) -> Verdict {
        session.native_id = Some(exit.to_string());
        let outcome = self.last.take().unwrap_or_else(|| {
            Err(Failure::new(
                FailureClass::Crashed,
                failure::with_stderr("no result", stderr),
            ))
        });
        Verdict {
            outcome,
            usage: None,
        }
    }
}

pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) deadline: Deadline,
    pub(crate) silence: Duration,
    pub(crate) capacity: usize,
    pub(crate) keep_stdin: bool,
    pub(crate) stdin: Vec<u8>,
    pub(crate) private_files: Vec<(String, Vec<u8>)>,
    pub(crate) remove_at_end: Vec<PathBuf>,
}

impl Bench {
    /// With a clock that runs.
    pub(crate) fn new() -> Self {
        Self::with_clock(Arc::new(jig_process::SystemClock::new()))
    }

    pub(crate) fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        std::fs::create_dir(dir.path().join("tree")).unwrap();
        Self {
            dir,
            deadline: Deadline::new(clock),
            silence: Duration::from_secs(300),
            capacity: 256,
            keep_stdin: false,
            stdin: Vec::new(),
            private_files: Vec::new(),
            remove_at_end: Vec::new(),
        }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    /// Waits for a file that a script makes in the work tree.
    pub(crate) async fn wait_for_file(&self, name: &str) {
        let path = self.tree().join(name);
        jig_testkit::wait_until_async(name, || path.exists()).await;
    }

    /// Makes a file that a script waits for.
    pub(crate) fn touch(&self, name: &str) {
        std::fs::write(self.tree().join(name), "").unwrap();
    }

    fn request(&self) -> SendRequest {
        SendRequest {
            role: "role".into(),
            prompt: String::new(),
            system_prompt: String::new(),
            model: String::new(),
            effort: None,
            budget_usd: None,
            tools: None,
            output: OutputMode::Text,
            work_tree: self.tree(),
            home: self.home(),
            env: Environment::empty()
                .with(
                    "PATH",
                    std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()),
                )
                .with("HOME", self.home()),
            remove_at_end: self.remove_at_end.clone(),
            confinement: Confinement::None,
        }
    }

    /// Starts a send of `program`; the events come out of the receiver.
    pub(crate) fn start_program(&self, program: Program, words: Words) -> Running {
        let (events, receiver) = mpsc::channel(self.capacity);
        let control = SendControl {
            deadline: self.deadline.clone(),
            silence: self.silence,
            events,
            live: None,
            stderr_filter: None,
        };
        let invocation = Invocation {
            program,
            args: Vec::new(),
            env: Vec::new(),
            stdin: self.stdin.clone(),
            keep_stdin: self.keep_stdin,
            private_files: self.private_files.clone(),
        };
        let request = self.request();
        let task = tokio::spawn(async move {
            let mut session = Session::new("attempt-role");
            let host = jig_testkit::host();
            let report = supervise(&host, invocation, words, &mut session, request, control).await;
            (report, session)
        });
        Running {
            task,
            events: receiver,
        }
    }

    pub(crate) fn start(&self, script: &str) -> Running {
        self.start_program(Program::Shell(script.into()), Words::default())
    }

    /// Runs a script to its end with a consumer that keeps up.
    pub(crate) async fn run(&self, script: &str) -> Done {
        self.start(script).done().await
    }
}

pub(crate) struct Running {
    pub(crate) task: tokio::task::JoinHandle<(SendReport, Session)>,
    pub(crate) events: mpsc::Receiver<RuntimeEvent>,
}

pub(crate) struct Done {
    pub(crate) report: SendReport,
    pub(crate) session: Session,
    pub(crate) events: Vec<RuntimeEvent>,
}

impl Running {
    /// Takes events to their end, then the report.
    pub(crate) async fn done(mut self) -> Done {
        let mut events = Vec::new();
        while let Some(event) = self.bounded_event().await {
            events.push(event);
        }
        let (report, session) = tokio::time::timeout(jig_testkit::BOUND, self.task)
            .await
            .expect("a report")
            .unwrap();
        Done {
            report,
            session,
            events,
        }
    }

    async fn bounded_event(&mut self) -> Option<RuntimeEvent> {
        tokio::time::timeout(jig_testkit::BOUND, self.events.recv())
            .await
            .expect("an event or the end")
    }

    /// Takes events until the text comes.
    pub(crate) async fn until_text(&mut self, text: &str) {
        loop {
            match self.bounded_event().await {
                Some(RuntimeEvent::Text { text: found }) if found == text => return,
                Some(_) => {}
                None => panic!("the send ended before {text:?}"),
            }
        }
    }
}

impl Done {
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match event {
                RuntimeEvent::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn logs(&self, name: &str) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match event {
                RuntimeEvent::Log { log, text, .. } if log == name => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }
}

/// Whether a process with this pid, read from a file of the tree, still lives.
pub(crate) fn is_alive(pid_file: &std::path::Path) -> bool {
    let pid: u32 = std::fs::read_to_string(pid_file)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    jig_process::ProcessIdentity::of(pid)
        .unwrap()
        .is_some_and(|identity| identity.liveness() == jig_process::Liveness::Alive)
}
