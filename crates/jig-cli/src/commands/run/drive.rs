//! The order of a run, and its report.

use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::time::Duration;

use jig_controlplane::Store;
use jig_controlplane::direct::{self, DirectError, DirectOutcome, DirectRequest};
use jig_controlplane::store::OpenOptions;
use jig_engine::{Engine, EngineConfig};
use jig_protocol::definition::Definition;
use jig_protocol::lifecycle::AttemptState;
use jig_protocol::outcome::{Budgets, Cause, PublishMarker, SandboxReport, Spend};
use jig_protocol::repo_path::RepoPath;
use jig_runtime_scripted::{Script, ScriptedRuntime};
use tokio_util::sync::CancellationToken;

use super::checks::{self, Pinned, cancelled, or_interrupt};
use super::executor::{Executor, HostReport};
use super::request::Request;
use crate::args::RunArgs;
use crate::cancel::{self, Interrupt};
use crate::compose::{self, Machine, SystemRandom};
use crate::exit_code::{CommandError, CommandResult};
use crate::output;
use crate::progress::{Progress, Show};
use crate::report::{RunReport, verdict};
use crate::settings::Settings;

/// How often the live line is repainted.
const REPAINT: Duration = Duration::from_millis(100);

pub(crate) async fn run(args: RunArgs, settings: &Settings) -> CommandResult {
    let request = Request::read(args, settings.color)?;
    request.refuse_secrets(&settings.env)?;
    if waits_for_ci(&request.definition) {
        output::note(
            "warning: publish.ci is of no effect here: this run makes a local branch, which no CI sees",
        );
    }
    let order = Order::new(request, settings)?;
    let report = execute(order, settings).await?;
    print(&report, settings)
}

/// Prints a report as `jig run` does.
pub(crate) fn print(report: &RunReport, settings: &Settings) -> CommandResult {
    if settings.json {
        crate::evidence::json_line(report)?;
    } else {
        output::result(&output::harmless(&report.prose()));
    }
    Ok(report.exit)
}

/// A run that is ready to be executed.
pub(crate) struct Order {
    pub(crate) request: Request,
    pub(crate) machine: Machine,
    pub(crate) data_dir: std::path::PathBuf,
}

impl Order {
    /// Composes the machine for a request.
    pub(crate) fn new(request: Request, settings: &Settings) -> Result<Self, CommandError> {
        Ok(Self {
            request,
            machine: Machine::find(settings)?,
            data_dir: settings.data_dir()?,
        })
    }
}

/// Looks, admits, executes, and reports. Once an attempt was admitted there is
/// a report, whatever happened.
pub(crate) async fn execute(order: Order, settings: &Settings) -> Result<RunReport, CommandError> {
    let Order {
        mut request,
        machine,
        data_dir,
    } = order;
    let mut interrupt = cancel::listen().map_err(CommandError::infrastructure)?;
    let pinned = or_interrupt(
        &mut interrupt,
        checks::repository(&machine.host_config(data_dir.clone()), &request),
    )
    .await?;
    let scripted = request
        .script
        .take()
        .map(|script| scripted(&machine, script));
    let in_use = checks::runtimes_in_use(&request);
    let agents = checks::agents_in_use(&machine, &data_dir, &in_use)?;
    let runtimes = compose::runtimes(&machine, scripted.clone(), agents);
    let known = or_interrupt(&mut interrupt, checks::probe(&runtimes, &in_use)).await?;
    known
        .values()
        .flat_map(|found| &found.warnings)
        .for_each(|warning| output::note(&output::harmless(&format!("warning: {warning}"))));

    let store = Store::open(
        &data_dir,
        Arc::clone(&machine.clock),
        &OpenOptions::default(),
    )
    .await
    .map_err(CommandError::infrastructure)?;
    let progress = Arc::new(Progress::new(settings.show));
    let host = machine.host_config(data_dir);
    let engine = Engine::new(EngineConfig {
        known,
        ..EngineConfig::new(runtimes, host, Arc::new(compose::random_number))
    });
    let executor = Arc::new(Executor::new(engine, &request, Arc::clone(&progress)));
    let direct = direct_request(&request, &pinned, &in_use, settings);
    let cancel = CancellationToken::new();
    let outcome = with_progress(
        &machine,
        &progress,
        settings.show,
        passing_on(
            interrupt,
            &cancel,
            direct::run(&store, &SystemRandom, direct, executor, cancel.clone()),
        ),
    )
    .await;
    store.close().await;
    let outcome = outcome.map_err(not_started)?;
    tell_of_others(&outcome);
    tell_of_problems(&outcome);
    if let Some(scripted) = scripted {
        warn_of_unused_steps(&scripted);
    }
    Ok(report(outcome))
}

fn waits_for_ci(definition: &Definition) -> bool {
    let ci = definition
        .publish
        .as_ref()
        .and_then(|publish| publish.ci.as_ref());
    ci.is_some_and(|ci| ci.wait)
}

fn scripted(machine: &Machine, script: Script) -> Arc<ScriptedRuntime> {
    Arc::new(ScriptedRuntime::new(machine.host.clone(), script))
}

fn direct_request(
    request: &Request,
    pinned: &Pinned,
    in_use: &std::collections::BTreeSet<jig_protocol::definition::RuntimeName>,
    settings: &Settings,
) -> DirectRequest {
    DirectRequest {
        definition_name: request.definition.name.clone(),
        definition_source: request.source.clone(),
        parameters: request.parameters.clone(),
        repository: RepoPath::from_bytes(pinned.path.as_os_str().as_bytes()).to_string(),
        base_ref: pinned.base_ref.clone(),
        base_sha: pinned.base.clone(),
        // A name that is not set is simply not handed to the role.
        environment_names: request
            .definition
            .required_environment()
            .into_iter()
            .filter(|name| settings.env.contains_key(std::ffi::OsStr::new(name)))
            .collect(),
        runtimes: in_use.iter().map(ToString::to_string).collect(),
    }
}

/// Drives `work` to its end and passes an interrupt on to it; never drops it.
async fn passing_on<T>(
    mut interrupt: Interrupt,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        answer = &mut work => return answer,
        _ = interrupt.wait_for(|come| *come) => {}
    }
    output::note("stopping: what runs is ended and recorded (a second Ctrl-C ends jig at once)");
    cancel.cancel();
    work.await
}

/// Drives `work` to its end while the live line is repainted.
async fn with_progress<T>(
    machine: &Machine,
    progress: &Progress,
    show: Show,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    let mut ticks = tokio::time::interval(REPAINT);
    let answer = loop {
        tokio::select! {
            answer = &mut work => break answer,
            _ = ticks.tick(), if show == Show::Live => progress.tick(machine.clock.now()),
        }
    };
    progress.finish();
    answer
}

fn not_started(error: DirectError) -> CommandError {
    match error {
        DirectError::Cancelled => cancelled(),
        error => CommandError::infrastructure(error),
    }
}

/// What became of runs that died before this one.
fn tell_of_others(outcome: &DirectOutcome<HostReport>) {
    for dead in &outcome.reclaim.attempts {
        let mut text = format!(
            "note: attempt {} of an earlier run that died is recorded as {}",
            dead.attempt_id,
            dead.state.as_str()
        );
        if let Some(tree) = &dead.retained {
            text.push_str(&format!("; its work tree is {}", tree.path.display()));
        }
        output::note(&output::harmless(&text));
    }
    for run in &outcome.reclaim.unmarked {
        output::note(&format!(
            "note: nothing tells whether run {run} still lives; it is left alone"
        ));
    }
}

fn tell_of_problems(outcome: &DirectOutcome<HostReport>) {
    for problem in &outcome.reclaim.problems {
        output::note(&output::harmless(&format!("warning: {problem}")));
    }
}

fn warn_of_unused_steps(scripted: &ScriptedRuntime) {
    for (role, left) in scripted.unused_steps() {
        output::note(&format!(
            "warning: the script's role {role} has {left} steps that were not played"
        ));
    }
}

fn report(outcome: DirectOutcome<HostReport>) -> RunReport {
    let completion = outcome.completion;
    let result = completion.result;
    let host = outcome.report.unwrap_or_default();
    let state = outcome.state.as_str();
    let mut cause = result.as_ref().and_then(|result| result.cause);
    let mut error = completion.error;
    if let Some(problem) = outcome.not_recorded {
        cause = Some(Cause::Infrastructure);
        error = Some(format!("the end could not be recorded: {problem}"));
    } else if result.is_none() && outcome.state != AttemptState::Cancelled {
        cause = Some(Cause::Infrastructure);
    }
    let (verdict, exit) = verdict(state, cause);
    RunReport {
        run_id: outcome.run_id.to_string(),
        job_id: outcome.job_id.to_string(),
        attempt_id: outcome.attempt_id.to_string(),
        state: state.to_owned(),
        outcome: verdict,
        exit,
        publish: result
            .as_ref()
            .map_or(PublishMarker::NotAttempted, |result| result.publish),
        publish_hold: result
            .as_ref()
            .and_then(|result| result.publish_hold.clone()),
        branch: host.branch,
        commit: host.commit,
        tree: completion
            .retained
            .map(|tree| tree.path.display().to_string()),
        trace_path: outcome.trace_path.display().to_string(),
        error,
        cause,
        acceptance: result.as_ref().and_then(|result| result.acceptance.clone()),
        changed_paths: result
            .as_ref()
            .map(|result| result.changed_paths.clone())
            .unwrap_or_default(),
        truncation: result.as_ref().and_then(|result| result.truncation.clone()),
        phases: result
            .as_ref()
            .map(RunReport::phases_of)
            .unwrap_or_default(),
        spend: result
            .as_ref()
            .map_or_else(Spend::default, |result| result.spend),
        budgets: result
            .as_ref()
            .map_or_else(Budgets::default, |result| result.budgets.clone()),
        sandbox: result
            .and_then(|result| result.sandbox)
            .unwrap_or_else(SandboxReport::none),
    }
}
