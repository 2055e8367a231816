//! `jig demo`: the stock factory on a sample repository, played by a script.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use jig_engine::host::Mode;
use jig_git::new_repository::{NewFile, create_repository};
use jig_protocol::definition::RuntimeName;

use super::run::{Order, Request, execute, print, usable_git};
use crate::args::DemoArgs;
use crate::compose::Machine;
use crate::definition_file::DefinitionFile;
use crate::exit_code::{CommandError, CommandResult, Exit};
use crate::output;
use crate::settings::{Settings, shell_word};

const DEFINITION: &str = include_str!("../../../../examples/definitions/factory.yaml");
const SCRIPT: &str = include_str!("../../../../examples/scripts/factory.yaml");
const PROMPT: &str = "Let greet.sh shout: with --shout it greets in capitals.";

macro_rules! sample {
    ($($path:literal: $executable:literal),* $(,)?) => {
        [$(NewFile {
            path: $path,
            content: include_str!(concat!("../../../../examples/sample/", $path)),
            executable: $executable,
        }),*]
    };
}

const FILES: [NewFile<'static>; 4] = sample! {
    "README.md": false,
    "greet.sh": true,
    "script/test": true,
    "tests/greets.sh": false,
};

/// More demos than anyone keeps.
const MOST_DEMOS: u32 = 10_000;

pub(crate) async fn run(args: DemoArgs, settings: &Settings) -> CommandResult {
    let data = settings.data_dir()?;
    let machine = Machine::find(settings)?;
    usable_git(&machine.git).await?;
    let repo = sample_repository(&machine, &data).await?;
    output::note(&format!(
        "The stock factory works on a sample repository: {}\nTask: {PROMPT}\n",
        repo.display()
    ));
    let request = request(repo.clone(), args.keep)?;
    let report = execute(
        Order {
            request,
            machine,
            data_dir: data,
        },
        settings,
    )
    .await?;
    let accepted = report.exit == Exit::Done;
    let branch = report.branch.clone();
    let exit = print(&report, settings)?;
    if accepted && !settings.json {
        where_to_look(&repo, branch.as_deref(), settings);
    }
    Ok(exit)
}

fn where_to_look(repo: &Path, branch: Option<&str>, settings: &Settings) {
    let repo = shell_word(&repo.to_string_lossy());
    let mut text = String::from("\nWhere to look:\n");
    if let Some(branch) = branch {
        text.push_str(&format!("  git -C {repo} log --stat main..{branch}\n"));
    }
    for words in [
        "attempt show latest",
        "attempt gates latest",
        "attempt events latest",
        "attempt diff latest --phase build",
    ] {
        text.push_str(&format!("  {}\n", settings.command(words)));
    }
    output::note(&output::harmless(&text));
}

fn request(repo: PathBuf, keep: bool) -> Result<Request, CommandError> {
    let path = Path::new("factory.yaml");
    let file = DefinitionFile::from_text(path, DEFINITION.to_owned());
    let broken = || CommandError::infrastructure(anyhow!("the built-in definition is not valid"));
    let definition = file.definition.ok_or_else(broken)?;
    let script = super::run::parse_script(SCRIPT, &definition)
        .context("the built-in script")
        .map_err(CommandError::infrastructure)?;
    Ok(Request {
        source: file.text,
        repo,
        parameters: [("prompt".to_owned(), PROMPT.to_owned())].into(),
        runtime: Some(RuntimeName::new(RuntimeName::SCRIPTED)),
        script: Some(script),
        mode: Mode::OwnTree,
        seed_auth: false,
        keep,
        definition,
    })
}

/// A fresh sample repository under `<data>/demo/<n>`.
async fn sample_repository(machine: &Machine, data: &Path) -> Result<PathBuf, CommandError> {
    let demos = data.join("demo");
    make_private(&demos).map_err(CommandError::infrastructure)?;
    let root = (1..MOST_DEMOS)
        .map(|number| demos.join(number.to_string()))
        .find_map(|dir| match std::fs::create_dir(&dir) {
            Ok(()) => Some(Ok(dir)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
            Err(error) => Some(Err(error)),
        })
        .unwrap_or_else(|| {
            Err(std::io::Error::other(
                "there are too many demos; remove some",
            ))
        })
        .with_context(|| format!("cannot make a sample repository under {}", demos.display()))
        .map_err(CommandError::infrastructure)?;
    create_repository(&machine.git, &root, &FILES, "Greet people")
        .await
        .map_err(CommandError::infrastructure)?;
    Ok(root)
}

fn make_private(dir: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .with_context(|| format!("cannot make {}", dir.display()))
}
