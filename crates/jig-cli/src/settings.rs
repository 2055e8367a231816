//! What the operator's environment and the common flags say: read once, passed
//! on as values.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::anyhow;

use crate::args::Common;
use crate::exit_code::CommandError;
use crate::progress::Show;

/// The operator's settings.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Where jig keeps everything; `None` when neither flag, variable nor home
    /// says so.
    data: Option<PathBuf>,
    /// How this program was called, and the `--data` it was given: what a command
    /// that is offered must begin and end with to work as it stands.
    called: (String, Option<PathBuf>),
    /// The operator's home directory.
    pub(crate) home: Option<PathBuf>,
    /// The operator's whole environment.
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// Machine output was asked for.
    pub(crate) json: bool,
    /// How much progress to show.
    pub(crate) show: Show,
    /// Whether stderr takes colours.
    pub(crate) color: bool,
    /// Threads of the runtime.
    pub(crate) threads: usize,
}

impl Settings {
    /// Reads the environment and starts logging.
    pub(crate) fn read(common: &Common) -> Result<Self, CommandError> {
        let env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let set = |name: &str| {
            env.get(&OsString::from(name))
                .filter(|value| !value.is_empty())
        };
        let home = set("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute());
        let data = common
            .data
            .clone()
            .or_else(|| set("JIG_HOME").map(PathBuf::from))
            .or_else(|| home.as_ref().map(|home| home.join(".jig")));
        let terminal = std::io::stderr().is_terminal();
        let color = terminal && set("NO_COLOR").is_none();
        start_logging(&common.log, color)?;
        let show = match (common.no_progress, terminal) {
            (true, _) => Show::Nothing,
            (false, true) => Show::Live,
            (false, false) => Show::Lines,
        };
        let program = std::env::args_os().next().unwrap_or_default();
        Ok(Self {
            data,
            called: (called(&program), common.data.clone()),
            home,
            json: common.json,
            show,
            color,
            threads: std::thread::available_parallelism()
                .map_or(2, usize::from)
                .clamp(2, 8),
            env,
        })
    }

    /// A command of this program, to be copied into a shell.
    pub(crate) fn command(&self, words: &str) -> String {
        let (program, data) = &self.called;
        let data = data
            .as_ref()
            .map(|data| shell_word(&data.to_string_lossy()));
        let data = data.map(|data| format!(" --data {data}"));
        format!("{program} {words}{}", data.unwrap_or_default())
    }

    /// The data directory, absolute; it need not exist.
    pub(crate) fn data_dir(&self) -> Result<PathBuf, CommandError> {
        let data = self.data.as_ref().ok_or_else(|| {
            CommandError::usage(anyhow!("there is no place to keep runs: HOME is not set"))
                .hint("give one with --data DIR or JIG_HOME")
        })?;
        std::path::absolute(data).map_err(|error| {
            CommandError::usage(
                anyhow!(error).context(format!("data directory {}", data.display())),
            )
        })
    }
}

/// `jig` when a shell finds it by that name, else the path it was called by.
fn called(program: &OsStr) -> String {
    let path = program.to_string_lossy();
    if path.contains('/') {
        shell_word(&path)
    } else {
        "jig".to_owned()
    }
}

/// A word as a shell reads it back.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,~".contains(c);
    if !word.is_empty() && !word.starts_with('~') && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn start_logging(level: &str, color: bool) -> Result<(), CommandError> {
    let filter = tracing_subscriber::EnvFilter::try_new(level).map_err(|error| {
        CommandError::usage(anyhow!(error).context(format!("--log {level:?}")))
            .hint("use off, error, warn, info, debug or trace")
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(color)
        .init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_words_back() {
        for (word, written) in [
            ("/a/b-c_d.e", "/a/b-c_d.e"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("$x;*", "'$x;*'"),
            ("~/x", "'~/x'"),
        ] {
            assert_eq!(shell_word(word), written);
        }
        assert_eq!(called(OsStr::new("jig")), "jig");
        assert_eq!(called(OsStr::new("target/debug/jig")), "target/debug/jig");
    }
}
