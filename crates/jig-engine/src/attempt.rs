//! The engine's entry: one attempt from its input to its outcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jig_process::{Deadline, StopReason, StopSignal};
use jig_protocol::definition::{self, Definition, RuntimeName};
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::limits;
use jig_protocol::outcome::{AttemptEnd, Cause, ResultDocument};
use jig_runtime::{Capabilities, Runtimes};

use crate::boundary::Boundary;
use crate::breach;
use crate::budget::SendBudget;
use crate::ending::Ending;
use crate::fault::{FaultPoint, NoFaults, Step};
use crate::finish;
use crate::host::{Delivery, HostConfig, PreparedAttempt};
use crate::redact::Redactor;
use crate::start::RoleRuntimes;
use crate::state::State;
use crate::trace::{Emitter, EventSink};
use crate::unwind::{Unwinding, caught};

/// How often is looked whether what a panic dropped is gone.
const DROPPED_LOOKED_AT: Duration = Duration::from_millis(20);

/// How long what a panic dropped may take to be gone: the grace, and as long as
/// a supervisor may take beyond it before it is taken for stuck, twice.
const DROPPED_BOUND: Duration = Duration::from_secs(limits::STOP_GRACE.as_secs() + 30);

/// Where chance comes from: a number anywhere in the range of its type.
pub type RandomSource = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What an engine works with. Everything it may not find out by itself.
#[derive(Clone)]
pub struct EngineConfig {
    /// The agents there are.
    pub runtimes: Runtimes,
    /// What is known of them already; the others are asked by each attempt.
    pub known: BTreeMap<RuntimeName, Capabilities>,
    /// The machine: directories, git, clock, operator, the program with the
    /// hidden modes.
    pub host: HostConfig,
    /// Spreads out the waits before repeats.
    pub random: RandomSource,
    /// Sends an attempt may make.
    pub max_sends: u32,
    /// Multiplies every wait of the engine's own choosing; 1 outside of tests.
    pub wait_scale: f64,
    /// Where tests make it fail.
    pub faults: Arc<dyn FaultPoint>,
}

impl EngineConfig {
    /// A configuration with the limits of the table.
    #[must_use]
    pub fn new(runtimes: Runtimes, host: HostConfig, random: RandomSource) -> Self {
        Self {
            runtimes,
            known: BTreeMap::new(),
            host,
            random,
            max_sends: limits::MAX_SENDS,
            wait_scale: 1.0,
            faults: Arc::new(NoFaults),
        }
    }
}

impl std::fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineConfig")
            .field("runtimes", &self.runtimes.keys().collect::<Vec<_>>())
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// What one attempt is made of.
pub struct AttemptInput {
    /// The run.
    pub run_id: RunId,
    /// Its job.
    pub job_id: JobId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Which attempt at the job, from 1.
    pub attempt_number: u32,
    /// The frozen definition, as text.
    pub snapshot: String,
    /// Values for the prompts' placeholders, `prompt` among them.
    pub parameters: BTreeMap<String, String>,
    /// The attempt's place on disk.
    pub prepared: PreparedAttempt,
    /// Raised to cancel the attempt.
    pub cancel: StopSignal,
    /// Where events go besides the attempt's own file.
    pub sink: Arc<dyn EventSink>,
    /// Whether agents are given a copy of the operator's login.
    pub seed_auth: bool,
    /// Replaces the runtime of every role.
    pub runtime_override: Option<RuntimeName>,
    /// Replaces the definition's default runtime.
    pub default_runtime: Option<RuntimeName>,
}

/// How an attempt ended, with everything needed to dispose of it.
#[derive(Debug)]
pub struct AttemptOutcome {
    /// How the engine ended.
    pub end: AttemptEnd,
    /// The state of the attempt that follows, before anything is published.
    pub state: AttemptState,
    /// Why, for machines; `None` when it was accepted and is not held.
    pub cause: Option<Cause>,
    /// Why it was not accepted, for people; free of secrets, bounded.
    pub error: Option<String>,
    /// Why it is held.
    pub hold: Option<String>,
    /// The whole result, free of secrets, bounded.
    pub result: ResultDocument,
    /// What was delivered to the operator's repository.
    pub delivery: Delivery,
    /// What could not be recorded of the trace; `None` when all of it was.
    pub trace_problem: Option<String>,
    /// The attempt's place on disk, handed back.
    pub prepared: PreparedAttempt,
    /// The captures of the tree; `None` when the attempt ended before there
    /// was one.
    pub boundary: Option<Boundary>,
    /// Takes the attempt's secrets out of what is kept after it.
    pub redactor: Arc<Redactor>,
}

/// Drives attempts. Holds nothing of them: one engine serves any number, also
/// at once.
#[derive(Debug, Clone)]
pub struct Engine {
    config: EngineConfig,
}

impl Engine {
    /// An engine.
    #[must_use]
    pub fn new(config: EngineConfig) -> Self {
        Self { config }
    }

    /// What it works with.
    #[must_use]
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// Runs an attempt to its end, whichever that is.
    ///
    /// Always returns an outcome, with exactly one `attempt_end` as the last
    /// event; nothing that was started is running any more. Dropping the future
    /// stops what is running and records nothing.
    pub async fn run(&self, input: AttemptInput) -> AttemptOutcome {
        let parsed = definition::parse(&input.snapshot);
        let redactor = Arc::new(match &parsed.definition {
            Some(definition) => Redactor::of(definition, &self.config.host.operator.env),
            None => Redactor::default(),
        });
        let mut prepared = input.prepared;
        let trace = Arc::new(Emitter::open(
            &prepared.dirs.trace(),
            Arc::clone(&self.config.host.clock),
            redactor,
            Arc::clone(&input.sink),
        ));
        let started = self.config.host.clock.monotonic();
        let mut ran = Ran::default();
        let run_id = input.run_id;
        let request = Request {
            job_id: input.job_id,
            attempt_id: input.attempt_id,
            attempt_number: input.attempt_number,
            snapshot: input.snapshot,
            parameters: input.parameters,
            cancel: input.cancel,
            seed_auth: input.seed_auth,
            runtime_override: input.runtime_override,
            default_runtime: input.default_runtime,
            started,
        };
        let work = self.work(request, parsed, Arc::clone(&trace), &mut prepared, &mut ran);
        let end = caught(work)
            .await
            .unwrap_or_else(|panic| Err(Ending::infrastructure(panic)));
        let title = match &ran.definition {
            Some(definition) => format!("jig: {} ({run_id})", definition.name),
            None => format!("jig: {run_id}"),
        };
        finish::outcome(end, ran, prepared, &trace, &self.config, &title).await
    }

    /// Everything between the first event and the last.
    async fn work(
        &self,
        request: Request,
        parsed: definition::Parsed,
        trace: Arc<Emitter>,
        prepared: &mut PreparedAttempt,
        ran: &mut Ran,
    ) -> Result<(), Ending> {
        if let Some(problem) = trace.opening_problem() {
            return Err(Ending::infrastructure(problem));
        }
        let Some(definition) = parsed.definition else {
            let problems: Vec<String> = parsed
                .diagnostics
                .iter()
                .map(|problem| problem.message.clone())
                .collect();
            return Err(Ending::configuration(format!(
                "the definition does not parse: {}",
                problems.join("; ")
            )));
        };
        let definition = Arc::new(definition);
        ran.definition = Some(Arc::clone(&definition));
        let ceiling = definition
            .limits
            .attempt_ceiling
            .unwrap_or(limits::ATTEMPT_CEILING);
        let deadline = Deadline::new(Arc::clone(&self.config.host.clock))
            .and_at(request.started.saturating_add(ceiling), StopReason::Ceiling)
            .and_signal(&request.cancel);
        let mut attempt = Attempt {
            engine: &self.config,
            sends: SendBudget::new(self.config.max_sends),
            definition,
            attempt_id: request.attempt_id.to_string(),
            seed_auth: request.seed_auth,
            parameters: request.parameters.clone(),
            trace,
            deadline,
            logs: prepared.dirs.logs(),
            prepared,
            runtimes: RoleRuntimes::new(),
            boundary: None,
            state: State::default(),
            unwinding: Unwinding::default(),
        };
        let end = match caught(attempt.go(&request)).await {
            Ok(end) => end,
            // Whatever happens now, the captures are handed back: they decide
            // about the tree.
            Err(panic) => Err(caught(attempt.after_panic(panic))
                .await
                .unwrap_or_else(Ending::infrastructure)),
        };
        attempt.give_back(ran);
        end
    }
}

/// An attempt's input without its place on disk.
pub(crate) struct Request {
    pub(crate) job_id: JobId,
    pub(crate) attempt_id: AttemptId,
    pub(crate) attempt_number: u32,
    pub(crate) snapshot: String,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) cancel: StopSignal,
    pub(crate) seed_auth: bool,
    pub(crate) runtime_override: Option<RuntimeName>,
    pub(crate) default_runtime: Option<RuntimeName>,
    pub(crate) started: jig_protocol::time::Monotonic,
}

/// What is left of an attempt once it ended, as far as it got.
#[derive(Default)]
pub(crate) struct Ran {
    pub(crate) definition: Option<Arc<Definition>>,
    pub(crate) boundary: Option<Boundary>,
    pub(crate) state: State,
    pub(crate) sends: u32,
    pub(crate) unwinding: Unwinding,
}

/// An attempt while it runs.
pub(crate) struct Attempt<'e> {
    pub(crate) engine: &'e EngineConfig,
    pub(crate) definition: Arc<Definition>,
    pub(crate) attempt_id: String,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) seed_auth: bool,
    pub(crate) trace: Arc<Emitter>,
    /// The attempt's ceiling and its cancellation.
    pub(crate) deadline: Deadline,
    pub(crate) sends: SendBudget,
    pub(crate) prepared: &'e mut PreparedAttempt,
    /// Where commands' output goes.
    pub(crate) logs: std::path::PathBuf,
    pub(crate) runtimes: RoleRuntimes,
    /// Opened by [`Attempt::go`].
    pub(crate) boundary: Option<Boundary>,
    pub(crate) state: State,
    /// The clock of its end.
    pub(crate) unwinding: Unwinding,
}

impl Attempt<'_> {
    async fn go(&mut self, request: &Request) -> Result<(), Ending> {
        self.start(request).await?;
        self.run_chain().await?;
        self.check_clocks("before acceptance")?;
        self.ends();
        self.final_check().await
    }

    /// What is in the tree must be what was judged: between entries nobody has
    /// business there.
    async fn final_check(&mut self) -> Result<(), Ending> {
        self.reach(Step::FinalCheck)?;
        let unwinding = self.unwinding();
        let differing = unwinding
            .bound(self.boundary()?.final_check())
            .await
            .map_err(|reason| Ending::infrastructure(format!("no last check: {reason}")))?
            .map_err(|error| Ending::broken(&error))?;
        if differing.is_empty() {
            return Ok(());
        }
        let outcome = "changed after the last phase, left as it is";
        let (trace, logs) = (&self.trace, &self.logs);
        let paths = breach::tell_of_nobody(trace, logs, "last-check", &differing, outcome);
        Err(Ending::breach(format!(
            "the work tree was changed when nothing of the attempt was running, {paths}"
        )))
    }

    /// Ends the open entry after a panic, its boundary included.
    async fn after_panic(&mut self, panic: String) -> Ending {
        let ending = Ending::infrastructure(panic);
        if self.state.open.is_none() {
            return ending;
        }
        self.ends();
        self.wait_for_dropped().await;
        let close = crate::entry::Close::Ended {
            ending: ending.clone(),
            class: None,
        };
        match caught(self.close(close)).await {
            Ok(Err(closed)) => closed,
            Ok(Ok(_)) => ending,
            Err(again) => ending.after(Some(&again)),
        }
    }

    /// A panic dropped what was running, which only begins its stop. Nothing
    /// may be judged before it is through; what is not counts as running on.
    async fn wait_for_dropped(&mut self) {
        let manifest = self.prepared.manifest.clone();
        let all_gone = async {
            while !manifest.current().process_groups.is_empty() {
                self.sleep(DROPPED_LOOKED_AT).await;
            }
        };
        let clock = Arc::clone(&self.engine.host.clock);
        let bound = Deadline::new(clock).and_within(DROPPED_BOUND, StopReason::Unwinding);
        if bound.bound(all_gone).await.is_ok() {
            return;
        }
        let left = self.prepared.manifest.current().process_groups;
        if let Some(open) = self.state.open.as_mut() {
            open.survivors
                .extend(left.iter().map(|group| format!("supervisor {group}")));
        }
    }

    /// The captures of the tree.
    pub(crate) fn boundary(&mut self) -> Result<&mut Boundary, Ending> {
        self.boundary
            .as_mut()
            .ok_or_else(|| Ending::infrastructure("the work tree was never captured"))
    }

    /// Passes a step that a test may make fail.
    pub(crate) fn reach(&self, step: Step) -> Result<(), Ending> {
        self.engine.faults.reach(step).map_err(Ending::from)
    }

    /// A number from 0 to 1.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a spread of waits needs no more than 53 bits"
    )]
    pub(crate) fn jitter(&self) -> f64 {
        (self.engine.random)() as f64 / u64::MAX as f64
    }

    /// A wait of the engine's own.
    pub(crate) fn sleep(&self, wait: Duration) -> jig_protocol::time::Sleep {
        let clock = &self.engine.host.clock;
        clock.sleep_until(clock.monotonic().saturating_add(wait))
    }

    fn give_back(self, ran: &mut Ran) {
        ran.sends = self.sends.used();
        ran.unwinding = self.unwinding;
        ran.boundary = self.boundary;
        ran.state = self.state;
    }
}
