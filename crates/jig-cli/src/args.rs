//! What may stand on the command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use jig_protocol::definition::SandboxTier;
use jig_protocol::limits::Retention;

/// Printed after every command's help: exit codes are part of the interface.
const EXIT_CODES: &str = "\
Exit codes:
  0    accepted, or done
  1    infrastructure: no verdict
  2    wrong usage, or an invalid definition
  3    rejected: jig worked and the answer is no (also when cancelled)
  130  a second Ctrl-C while unwinding";

/// What `jig gc` keeps.
fn retention() -> String {
    let kept = Retention::default();
    format!(
        "An attempt goes when it is older than {} days or is not among the newest {}. One whose\n\
         work tree is kept stays until `jig worktree release`; one that is going on stays.",
        kept.age.as_secs() / (24 * 60 * 60),
        kept.attempts
    )
}

/// Runs repeatable, phased coding-agent workflows against Git repositories, and
/// makes "done" a property of the work.
#[derive(Debug, Parser)]
#[command(name = "jig", version = crate::version::SHORT, disable_help_subcommand = true)]
#[command(after_help = format!("Example:\n  jig demo\n\n{EXIT_CODES}"))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// The command line that `jig help …` stands for; any other as it is.
    pub(crate) fn read() -> Self {
        let cli = Self::parse();
        let Command::Help { command } = &cli.command else {
            return cli;
        };
        let words = std::iter::once("jig").chain(command.iter().map(String::as_str));
        let asked = words.chain(std::iter::once("--help"));
        match Self::command().try_get_matches_from(asked) {
            Err(help) => help.exit(),
            Ok(_) => cli,
        }
    }
}

/// Flags of every command.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Where jig keeps everything [default: $JIG_HOME, else ~/.jig]
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        value_name = "DIR"
    )]
    pub(crate) data: Option<PathBuf>,
    /// Print one machine-readable object (or one per line) instead of prose
    #[arg(long, global = true, help_heading = "Options of every command")]
    pub(crate) json: bool,
    /// What is logged to stderr: off, error, warn, info, debug, trace, or a filter
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        value_name = "LEVEL",
        default_value = "warn"
    )]
    pub(crate) log: String,
    /// No live progress on the terminal
    #[arg(long, global = true, help_heading = "Options of every command")]
    pub(crate) no_progress: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one definition against one local repository
    #[command(after_help = format!("\
Examples:
  jig run --def two-phase.yaml \"Add a note about the build\"
  jig run --def factory.yaml ../service --prompt-file task.md --json
  jig run --def smoke.yaml --runtime scripted --script smoke.script.yaml . \"Look around\"

One positional is the PROMPT; with --prompt-file it is the REPO.

The run starts from the commit that is checked out in REPO, in a tree of its own: what is
uncommitted is not seen and not touched. An accepted result is a new branch of REPO,
`jig/<job>/1`; nothing is merged or pushed. `jig attempt show` says what happened.

{EXIT_CODES}"))]
    #[command(
        override_usage = "jig run [OPTIONS] --def <FILE> [REPO] <PROMPT>\n       \
        jig run [OPTIONS] --def <FILE> --prompt-file <FILE> [REPO]"
    )]
    Run(RunArgs),
    /// Run the stock factory on a sample repository: no agent, no network
    #[command(after_help = format!("Example:\n  jig demo\n\n{EXIT_CODES}"))]
    Demo(DemoArgs),
    /// Check, explain and describe definitions
    #[command(subcommand, after_help = format!("Example:\n  jig def validate factory.yaml\n\n{EXIT_CODES}"))]
    Def(DefCommand),
    /// The evidence of one attempt
    #[command(subcommand, after_help = format!("Example:\n  jig attempt show latest\n\n{EXIT_CODES}"))]
    Attempt(AttemptCommand),
    /// Retained work trees
    #[command(subcommand, after_help = format!("Example:\n  jig worktree list\n\n{EXIT_CODES}"))]
    Worktree(WorktreeCommand),
    /// Prune what retention allows
    #[command(after_help = format!("\
Example:
  jig gc --dry-run

{}

{EXIT_CODES}", retention()))]
    Gc(GcArgs),
    /// What this machine offers, and what to do about what it lacks
    #[command(after_help = format!("\
Example:
  jig doctor

A FAIL is something without which no run can work; it ends with 1.

{EXIT_CODES}"))]
    Doctor,
    /// What is asked for by habit: the same as `--help`
    #[command(hide = true)]
    Help {
        /// The command to explain
        command: Vec<String>,
    },
    /// Version and commit
    #[command(after_help = format!("Example:\n  jig version --json\n\n{EXIT_CODES}"))]
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The definition file
    #[arg(long, value_name = "FILE")]
    pub(crate) def: PathBuf,
    /// The repository (default `.`) and what is to be done in it
    #[arg(value_name = "REPO PROMPT")]
    pub(crate) positionals: Vec<String>,
    /// Read the prompt from a file (`-` is standard input)
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt_file: Option<PathBuf>,
    /// Who acts: `scripted` replaces every runtime of the run, another name the definition's
    /// default [default: the definition's, else claude-code]
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    /// With --runtime scripted: what each role does (see docs/scripted-runtime.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// A parameter of the definition's prompts (repeatable)
    #[arg(long, value_name = "K=V")]
    pub(crate) param: Vec<String>,
    /// Work in the checkout itself instead of a tree of its own
    #[arg(long)]
    pub(crate) in_place: bool,
    /// With --in-place: accept uncommitted changes (they are saved and restored exactly)
    #[arg(long, requires = "in_place")]
    pub(crate) allow_dirty: bool,
    /// Do not copy the agent CLI's login into the role's home
    #[arg(long)]
    pub(crate) no_seed_auth: bool,
    /// Refuse to run below this sandbox tier; this version has none and always refuses
    #[arg(long, value_name = "TIER", num_args = 0..=1, require_equals = true, default_missing_value = "landlock", conflicts_with = "no_sandbox")]
    pub(crate) require_sandbox: Option<TierArg>,
    /// Run without a kernel sandbox
    #[arg(long)]
    pub(crate) no_sandbox: bool,
    /// Keep the work tree also when the result was accepted
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TierArg {
    /// A Landlock domain or better
    Landlock,
    /// Namespaces
    Namespace,
}

impl From<TierArg> for SandboxTier {
    fn from(tier: TierArg) -> Self {
        match tier {
            TierArg::Landlock => Self::Landlock,
            TierArg::Namespace => Self::Namespace,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the work tree also when the result was accepted
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DefCommand {
    /// Check definition files, offline
    #[command(after_help = format!("Example:\n  jig def validate --strict examples/definitions/*.yaml\n\n{EXIT_CODES}"))]
    Validate {
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Warnings fail too
        #[arg(long)]
        strict: bool,
    },
    /// Show the chain, its loops and what it can cost
    #[command(after_help = format!("Example:\n  jig def explain factory.yaml\n\n{EXIT_CODES}"))]
    Explain {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the JSON Schema of definition files
    #[command(after_help = format!("Example:\n  jig def schema > jig.schema.json\n\n{EXIT_CODES}"))]
    Schema,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AttemptCommand {
    /// State, phases, spend and where everything is
    #[command(after_help = format!("Example:\n  jig attempt show latest\n\n{EXIT_CODES}"))]
    Show(AttemptRef),
    /// The trace
    #[command(after_help = format!("Example:\n  jig attempt events latest --json\n\n{EXIT_CODES}"))]
    Events {
        #[command(flatten)]
        attempt: AttemptRef,
        /// Only events of this phase
        #[arg(long, value_name = "PHASE")]
        phase: Option<String>,
    },
    /// What changed, against the base or in one phase
    #[command(after_help = format!("Example:\n  jig attempt diff latest --phase build\n\n{EXIT_CODES}"))]
    Diff {
        #[command(flatten)]
        attempt: AttemptRef,
        /// Only what this phase changed when it last passed
        #[arg(long, value_name = "PHASE")]
        phase: Option<String>,
    },
    /// What every gate found
    #[command(after_help = format!("Example:\n  jig attempt gates latest\n\n{EXIT_CODES}"))]
    Gates(AttemptRef),
    /// What every phase answered
    #[command(after_help = format!("Example:\n  jig attempt envelopes latest\n\n{EXIT_CODES}"))]
    Envelopes(AttemptRef),
}

#[derive(Debug, Args)]
pub(crate) struct AttemptRef {
    /// An attempt's id, the unique start of one, or `latest`
    #[arg(value_name = "ATTEMPT", default_value = "latest")]
    pub(crate) attempt: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorktreeCommand {
    /// Every work tree that was kept
    #[command(after_help = format!("Example:\n  jig worktree list\n\n{EXIT_CODES}"))]
    List,
    /// One work tree: where it is and why it was kept
    #[command(after_help = format!("Example:\n  jig worktree show latest\n\n{EXIT_CODES}"))]
    Show(AttemptRef),
    /// Remove a kept work tree for good
    #[command(after_help = format!("Example:\n  jig worktree release latest --confirm\n\n{EXIT_CODES}"))]
    Release {
        #[command(flatten)]
        attempt: AttemptRef,
        /// Without this, what would be lost is shown and nothing is removed
        #[arg(long)]
        confirm: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Show what would go, remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove the download caches of toolchains too
    #[arg(long)]
    pub(crate) caches: bool,
}
