//! A breach on its way to people: the event with the first paths, the file
//! with all of them, the text.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use jig_protocol::event::{Breach, EventBody, WriteBoundaryBreach};
use jig_protocol::limits;
use jig_protocol::repo_path::RepoPath;

use crate::redact::Redactor;
use crate::trace::Emitter;

/// Who did what.
pub(crate) struct Breached<'a> {
    /// The phase, when it was one.
    pub(crate) phase: Option<&'a str>,
    /// Who acted, as records name it.
    pub(crate) role: String,
    /// What may be written; `None` when that is everything.
    pub(crate) writes: Option<Vec<String>>,
    /// All of it.
    pub(crate) breaches: &'a [Breach],
    /// What else was made, and may be.
    pub(crate) outputs: &'a [RepoPath],
    /// The name of the list's file in `logs`, without the ending.
    pub(crate) list: String,
}

/// Tells of a breach. Gives how many paths there are and names the first.
pub(crate) fn tell(trace: &Emitter, logs: &Path, breached: Breached<'_>) -> String {
    let total = breached.breaches.len();
    let file = logs.join(format!("{}.txt", breached.list));
    let list = match write_list(&file, breached.breaches, trace.redactor()) {
        Ok(()) => file.to_string_lossy().into_owned(),
        Err(error) => format!("(not written: {error})"),
    };
    let shown: Vec<Breach> = breached
        .breaches
        .iter()
        .take(limits::BREACH_PATHS_SHOWN as usize)
        .cloned()
        .collect();
    let named: Vec<String> = shown
        .iter()
        .map(|breach| format!("{} ({})", breach.path, breach.outcome))
        .collect();
    let rest = if total > shown.len() {
        format!(" and {} more, all listed in {list}", total - shown.len())
    } else {
        String::new()
    };
    trace.emit(
        breached.phase,
        &EventBody::WriteBoundaryBreach(WriteBoundaryBreach {
            role: breached.role,
            writes: breached.writes,
            breaches: shown,
            total,
            list,
            build_outputs: breached.outputs.to_vec(),
        }),
    );
    format!(
        "{total} path{}: {}{rest}",
        if total == 1 { "" } else { "s" },
        named.join(", ")
    )
}

/// Tells of a breach that nobody's entry made, found at `place`.
pub(crate) fn tell_of_nobody(
    trace: &Emitter,
    logs: &Path,
    place: &str,
    paths: &[RepoPath],
    outcome: &str,
) -> String {
    let breaches: Vec<Breach> = paths
        .iter()
        .map(|path| Breach {
            path: path.clone(),
            outcome: outcome.to_owned(),
        })
        .collect();
    let breached = Breached {
        phase: None,
        role: String::new(),
        writes: Some(Vec::new()),
        breaches: &breaches,
        outputs: &[],
        list: format!("breach-at-{place}"),
    };
    tell(trace, logs, breached)
}

fn write_list(file: &Path, breaches: &[Breach], redactor: &Redactor) -> std::io::Result<()> {
    let lines: String = breaches
        .iter()
        .map(|breach| format!("{}\t{}\n", redactor.path(&breach.path), breach.outcome))
        .collect();
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?
        .write_all(lines.as_bytes())
}
