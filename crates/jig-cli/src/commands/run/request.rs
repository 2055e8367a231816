//! What a command line asks for: read and judged before the repository is
//! looked at or anything is started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use jig_engine::host::Mode;
use jig_engine::redact::Redactor;
use jig_protocol::definition::{Definition, Name, RuntimeName, SandboxTier, not_yet_runnable};
use jig_runtime_scripted::Script;

use crate::args::RunArgs;
use crate::compose::runtime_named;
use crate::definition_file::{DefinitionFile, read_bounded, read_text};
use crate::exit_code::CommandError;

/// Largest prompt; an agent's context holds no more.
const PROMPT_BYTES: usize = 1024 * 1024;
/// Largest script.
const SCRIPT_BYTES: usize = 4 * 1024 * 1024;
/// Placeholders that parameters may not shadow.
const BUILT_IN: [&str; 4] = ["prompt", "previous_envelope", "handoff_dir", "base_sha"];

/// A run that is asked for, as far as it can be judged without a repository.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) definition: Definition,
    pub(crate) source: String,
    pub(crate) repo: PathBuf,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) runtime: Option<RuntimeName>,
    pub(crate) script: Option<Script>,
    pub(crate) mode: Mode,
    pub(crate) seed_auth: bool,
    pub(crate) keep: bool,
}

impl Request {
    /// Reads everything the command line names. An invalid definition is
    /// complained about here; the error then only says so.
    pub(crate) fn read(args: RunArgs, color: bool) -> Result<Self, CommandError> {
        let (repo, prompt) = positionals(&args)?;
        let file = DefinitionFile::read(&args.def).map_err(CommandError::usage)?;
        file.complain(color);
        let Some(definition) = file.definition else {
            return Err(CommandError::usage(anyhow!(
                "{} is not a valid definition; nothing was started",
                args.def.display()
            )));
        };
        let mut parameters = parameters(&args.param)?;
        parameters.insert("prompt".to_owned(), prompt.read()?);
        let runtime = args.runtime.as_deref().map(runtime_named).transpose()?;
        let script = script(&args, runtime.as_ref(), &definition)?;
        let request = Self {
            source: file.text,
            repo,
            parameters,
            runtime,
            script,
            mode: if args.in_place {
                Mode::InPlace {
                    allow_dirty: args.allow_dirty,
                }
            } else {
                Mode::OwnTree
            },
            seed_auth: !args.no_seed_auth,
            keep: args.keep,
            definition,
        };
        refuse_what_cannot_run(&request.definition)?;
        check_sandbox(&request.definition, &args)?;
        Ok(request)
    }
}

impl Request {
    /// Refuses to write a secret down: prompt and parameters become part of the
    /// run, which is kept.
    pub(crate) fn refuse_secrets(
        &self,
        env: &BTreeMap<OsString, OsString>,
    ) -> Result<(), CommandError> {
        let redactor = Redactor::of(&self.definition, env);
        let definition = ("definition", &self.source);
        let parameters = self
            .parameters
            .iter()
            .map(|(name, value)| (name.as_str(), value));
        for (name, value) in parameters.chain([definition]) {
            if redactor.text(value) != value.as_str() {
                let what = match name {
                    "prompt" | "definition" => format!("the {name}"),
                    other => format!("the parameter {other:?}"),
                };
                return Err(CommandError::usage(anyhow!(
                    "{what} holds the value of a sensitive_env name, and would be kept with the run"
                ))
                .hint("leave it out: the role finds it in its environment, under that name"));
            }
        }
        Ok(())
    }

    /// What replaces every runtime, and what replaces the default only:
    /// `scripted` is the one that replaces all.
    pub(crate) fn runtimes(&self) -> (Option<&RuntimeName>, Option<&RuntimeName>) {
        match &self.runtime {
            Some(name) if name.as_str() == RuntimeName::SCRIPTED => (Some(name), None),
            other => (None, other.as_ref()),
        }
    }
}

fn refuse_what_cannot_run(definition: &Definition) -> Result<(), CommandError> {
    let missing = not_yet_runnable(definition);
    if missing.is_empty() {
        return Ok(());
    }
    Err(CommandError::usage(anyhow!(
        "this version cannot run a definition that uses {}; nothing was started",
        missing.join(", ")
    ))
    .hint("jig def validate and jig def explain accept it; running it comes with a later version"))
}

/// There is no kernel sandbox in this version, so a required one is unmet.
fn check_sandbox(definition: &Definition, args: &RunArgs) -> Result<(), CommandError> {
    let asked = args
        .require_sandbox
        .map(SandboxTier::from)
        .or(definition.sandbox.require);
    match asked {
        None | Some(SandboxTier::None) => Ok(()),
        Some(tier) => Err(CommandError::infrastructure(anyhow!(
            "the sandbox tier {} is required, and this version has no kernel sandbox; \
             nothing was started",
            tier.as_str()
        ))
        .hint("run without --require-sandbox (and sandbox.require) to rely on the write boundary alone")),
    }
}

/// Where the prompt comes from.
enum PromptFrom {
    Text(String),
    File(PathBuf),
}

impl PromptFrom {
    fn read(self) -> Result<String, CommandError> {
        let (text, what) = match self {
            Self::Text(text) => (Ok(text), "the prompt".to_owned()),
            Self::File(path) if path.as_os_str() == "-" => (
                read_bounded(std::io::stdin().lock(), PROMPT_BYTES),
                "standard input".to_owned(),
            ),
            Self::File(path) => (
                read_text(&path, PROMPT_BYTES),
                format!("the prompt file {}", path.display()),
            ),
        };
        let text = text
            .with_context(|| format!("cannot read {what}"))
            .map_err(CommandError::usage)?;
        if text.trim().is_empty() {
            return Err(CommandError::usage(anyhow!("{what} is empty")));
        }
        Ok(text)
    }
}

/// A single positional is the PROMPT without, and the REPO with --prompt-file.
fn positionals(args: &RunArgs) -> Result<(PathBuf, PromptFrom), CommandError> {
    let here = || PathBuf::from(".");
    match (&args.prompt_file, args.positionals.as_slice()) {
        (Some(file), []) => Ok((here(), PromptFrom::File(file.clone()))),
        (Some(file), [repo]) => Ok((PathBuf::from(repo), PromptFrom::File(file.clone()))),
        (Some(_), _) => Err(CommandError::usage(anyhow!(
            "with --prompt-file there is only one positional, the REPO"
        ))),
        (None, [prompt]) if PathBuf::from(prompt).is_dir() => Err(CommandError::usage(anyhow!(
            "{prompt:?} is a directory, but the only positional is the PROMPT"
        ))
        .hint(format!(
            "jig run --def {} {prompt} \"what to do\"",
            args.def.display()
        ))),
        (None, [prompt]) => Ok((here(), PromptFrom::Text(prompt.clone()))),
        (None, [repo, prompt]) => Ok((PathBuf::from(repo), PromptFrom::Text(prompt.clone()))),
        (None, [_, _, third, ..]) => Err(CommandError::usage(anyhow!(
            "{third:?} is one word too many: there are only a REPO and a PROMPT"
        ))
        .hint("quote the prompt, so that the shell hands it on as one word")),
        (None, []) => Err(
            CommandError::usage(anyhow!("a PROMPT is needed")).hint(format!(
                "jig run --def {} \"what to do\"",
                args.def.display()
            )),
        ),
    }
}

fn parameters(given: &[String]) -> Result<BTreeMap<String, String>, CommandError> {
    let mut out = BTreeMap::new();
    for pair in given {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            CommandError::usage(anyhow!("--param {pair:?} is not of the form K=V"))
        })?;
        let name: Name = name.parse().map_err(|error| {
            CommandError::usage(anyhow::Error::new(error).context(format!("--param {pair:?}")))
        })?;
        if BUILT_IN.contains(&name.as_str()) {
            return Err(CommandError::usage(anyhow!(
                "--param {name}: the placeholder {{{{{name}}}}} is jig's own"
            )));
        }
        if out.insert(name.to_string(), value.to_owned()).is_some() {
            return Err(CommandError::usage(anyhow!(
                "--param {name} is given twice"
            )));
        }
    }
    Ok(out)
}

fn script(
    args: &RunArgs,
    runtime: Option<&RuntimeName>,
    definition: &Definition,
) -> Result<Option<Script>, CommandError> {
    let scripted = runtime.is_some_and(|name| name.as_str() == RuntimeName::SCRIPTED);
    match (&args.script, scripted) {
        (None, false) => Ok(None),
        (None, true) => Err(CommandError::usage(anyhow!(
            "--runtime scripted needs a --script FILE"
        ))),
        (Some(_), false) => Err(CommandError::usage(anyhow!(
            "--script is only read with --runtime scripted"
        ))),
        (Some(path), true) => {
            let named = || format!("the script {}", path.display());
            let text = read_text(path, SCRIPT_BYTES)
                .with_context(named)
                .map_err(CommandError::usage)?;
            let script = parse_script(&text, definition).with_context(named);
            script.map(Some).map_err(CommandError::usage)
        }
    }
}

/// Reads a script and holds it against a definition.
pub(crate) fn parse_script(text: &str, definition: &Definition) -> anyhow::Result<Script> {
    let script = Script::parse(text)?;
    script.check_roles(definition)?;
    Ok(script)
}
