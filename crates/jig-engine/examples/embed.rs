//! Embeds the engine and one adapter: a repository and a definition go in, a
//! branch comes out. No database, no server.
//!
//! `cargo run -p jig-engine --example embed [-- <repository> <data directory>]`;
//! without paths it makes a small repository and a data directory, and removes
//! both at its end.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use jig_engine::host::{HostConfig, HostedRun, Mode, run_attempt};
use jig_engine::{Engine, EngineConfig, NoSink};
use jig_git::new_repository::{NewFile, create_repository};
use jig_git::{Git, GitConfig, repository::Repository};
use jig_process::{Host, StopSignal, SystemClock};
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::time::Clock;
use jig_runtime::{AgentRuntime, OperatorHome};
use jig_runtime_scripted::{Script, ScriptedRuntime, scripted_agent_main};

const DEFINITION: &str = r#"
name: greet
roster:
  dev: {model: any, system_prompt: Be brief., user_prompt: "{{prompt}}", writes: ["*.txt"]}
phases:
  - {name: write, kind: agent, owner: dev, gates: [{name: diff_matches_claims}]}
  - {name: check, kind: code, command: grep -q hello hello.txt}
"#;
const SCRIPT: &str = r#"
roles:
  dev:
    - write: {hello.txt: "hello\n"}
      emit: {status: success, summary: greeted, artifacts: [hello.txt], changed_files: [hello.txt]}
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // This program is also the supervisor and the scripted agent.
    jig_process::supervisor_main();
    scripted_agent_main();
    let mut args = env::args_os().skip(1).map(PathBuf::from);
    let runtime = tokio::runtime::Runtime::new()?;
    if let Some((repository, data)) = args.next().zip(args.next()) {
        return runtime.block_on(embed(repository, data));
    }
    let scratch = tempfile::tempdir()?;
    let repository = scratch.path().join("sample");
    let readme = NewFile {
        path: "README",
        content: "A sample.\n",
        executable: false,
    };
    runtime.block_on(create_repository(&git(), &repository, &[readme], "Begin"))?;
    runtime.block_on(embed(repository, scratch.path().to_owned()))
}

fn git() -> Git {
    Git::new(GitConfig::new(env::var_os("PATH").unwrap_or_default()))
}

async fn embed(repository: PathBuf, data: PathBuf) -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::this_program()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let git = git();
    let scripted = ScriptedRuntime::new(host.clone(), Script::parse(SCRIPT)?);
    let runtime: Arc<dyn AgentRuntime> = Arc::new(scripted);
    let config = HostConfig {
        data_dir: data.canonicalize()?,
        git: git.clone(),
        clock: Arc::clone(&clock),
        operator: OperatorHome {
            home: env::home_dir().ok_or("no home")?,
            env: env::vars_os().collect(),
        },
        host,
    };
    let runtimes = BTreeMap::from([(runtime.name(), Arc::clone(&runtime))]);
    let engine = Engine::new(EngineConfig::new(runtimes, config, Arc::new(|| 0)));
    let base = Repository::discover(&git, &repository).await?;
    let base = base.resolve_base(&git, None).await?;
    let now = clock.now();
    let run = HostedRun {
        run_id: RunId::from_parts(now, [1; 10]),
        job_id: JobId::from_parts(now, [2; 10]),
        attempt_id: AttemptId::from_parts(now, [3; 10]),
        attempt_number: 1,
        lender: repository,
        base: base.id().to_string(),
        mode: Mode::OwnTree,
        snapshot: DEFINITION.to_owned(),
        parameters: BTreeMap::from([("prompt".to_owned(), "Say hello.".to_owned())]),
        cancel: StopSignal::new(),
        sink: Arc::new(NoSink),
        seed_auth: false,
        runtime_override: Some(runtime.name()),
        default_runtime: None,
        keep: false,
    };
    let outcome = run_attempt(&engine, run).await?;
    let branch = outcome
        .delivery
        .branch
        .ok_or(outcome.error.unwrap_or_default())?;
    std::io::Write::write_all(&mut std::io::stdout(), format!("{branch}\n").as_bytes())?;
    Ok(())
}
