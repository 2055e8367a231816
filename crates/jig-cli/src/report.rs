//! What `jig run` says at its end: one JSON object, or prose made from it.

use std::fmt::Write as _;

use jig_protocol::outcome::{
    Acceptance, Budgets, Cause, PhaseKindTag, PhaseStatus, PublishMarker, ResultDocument,
    SandboxReport, Spend, Truncation,
};
use jig_protocol::repo_path::RepoPath;
use jig_protocol::time::Timestamp;
use serde::Serialize;

use crate::exit_code::Exit;

/// Whether the work was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// Everything held.
    Accepted,
    /// jig worked and the answer is no.
    Rejected,
    /// There is no answer.
    None,
}

/// The object of `jig run --json`; its fields are the stable interface.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RunReport {
    pub(crate) run_id: String,
    pub(crate) job_id: String,
    pub(crate) attempt_id: String,
    pub(crate) state: String,
    pub(crate) outcome: Verdict,
    #[serde(rename = "exit_code")]
    pub(crate) exit: Exit,
    pub(crate) publish: PublishMarker,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) publish_hold: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tree: Option<String>,
    pub(crate) trace_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acceptance: Option<Acceptance>,
    pub(crate) changed_paths: Vec<RepoPath>,
    /// What `changed_paths` and `phases` lost to the bound of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) truncation: Option<Truncation>,
    pub(crate) phases: Vec<PhaseLine>,
    pub(crate) spend: Spend,
    pub(crate) budgets: Budgets,
    pub(crate) sandbox: SandboxReport,
}

/// One phase's entry in the report.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PhaseLine {
    pub(crate) phase: String,
    pub(crate) kind: PhaseKindTag,
    pub(crate) status: PhaseStatus,
    pub(crate) phase_attempt: Option<u32>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// The verdict and exit code of an attempt's end state (see docs of `jig run`).
pub(crate) fn verdict(state: &str, cause: Option<Cause>) -> (Verdict, Exit) {
    match (state, cause) {
        // First: an accepted end that could not be recorded is no verdict.
        (_, Some(cause)) if cause.is_no_verdict() => (Verdict::None, Exit::Infrastructure),
        ("accepted" | "accepted_unpublished", _) => (Verdict::Accepted, Exit::Done),
        ("lost", _) => (Verdict::None, Exit::Infrastructure),
        _ => (Verdict::Rejected, Exit::Rejected),
    }
}

/// One check of a gate or of acceptance, as a line for people.
pub(crate) fn check_line(ok: bool, item: &str, note: &str) -> String {
    let mark = if ok { "ok  " } else { "FAIL" };
    format!("  {mark} {item}: {note}")
}

impl RunReport {
    /// The lines that come from the result document.
    pub(crate) fn phases_of(result: &ResultDocument) -> Vec<PhaseLine> {
        result
            .phases
            .iter()
            .map(|phase| PhaseLine {
                phase: phase.phase.clone(),
                kind: phase.kind,
                status: phase.status,
                phase_attempt: phase.phase_attempt,
                started_at: phase.started_at,
                ended_at: phase.ended_at,
                error: phase.error.clone(),
            })
            .collect()
    }

    /// The report for people, ending with a newline.
    pub(crate) fn prose(&self) -> String {
        let mut out = String::new();
        // Writing into a String cannot fail.
        let _ = self.write_prose(&mut out);
        out
    }

    fn write_prose(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "run:     {}", self.run_id)?;
        writeln!(out, "job:     {}", self.job_id)?;
        writeln!(out, "attempt: {}", self.attempt_id)?;
        writeln!(out, "trace:   {}", self.trace_path)?;
        if let Some(tree) = &self.tree {
            writeln!(out, "tree:    {tree}")?;
        }
        match (self.outcome, &self.error) {
            (Verdict::Accepted, _) => writeln!(out, "accepted ({})", self.publish_text())?,
            (_, Some(error)) => writeln!(out, "{} — {error}", self.state)?,
            (_, None) => writeln!(out, "{}", self.state)?,
        }
        if let Some(hold) = &self.publish_hold {
            writeln!(out, "held:    {hold}")?;
        }
        if let Some(acceptance) = &self.acceptance {
            writeln!(out, "acceptance:")?;
            for check in &acceptance.checks {
                writeln!(out, "{}", check_line(check.ok, &check.item, &check.note))?;
            }
        }
        let total = self.truncation.as_ref().map(|was| was.changed_paths_total);
        write_changed(out, &self.changed_paths, total)?;
        self.write_spend(out)
    }

    fn write_spend(&self, out: &mut String) -> std::fmt::Result {
        let spend = &self.spend;
        write!(
            out,
            "spend:   ${:.4}, {} tokens in, {} out, {}",
            spend.cost_usd,
            spend.input_tokens,
            spend.output_tokens,
            counted(spend.sends, "send")
        )?;
        if spend.unmetered_sends > 0 {
            write!(out, " ({} of them unmetered)", spend.unmetered_sends)?;
        }
        if spend.late_sends > 0 {
            let sends = counted(spend.late_sends, "stopped send");
            write!(
                out,
                "; ${:.4} of it for {sends}, told later",
                spend.late_usd
            )?;
        }
        writeln!(out)
    }

    fn publish_text(&self) -> String {
        match (self.publish, &self.branch) {
            (PublishMarker::LocalBranch, Some(branch)) => format!("branch {branch}"),
            (PublishMarker::Held, Some(branch)) => format!("held, branch {branch}"),
            (PublishMarker::Held, None) => "held".to_owned(),
            (PublishMarker::NothingToPublish, _) => "nothing to publish".to_owned(),
            (PublishMarker::LocalBranch | PublishMarker::NotAttempted, _) => {
                "not published".to_owned()
            }
        }
    }
}

/// `1 send`, `2 sends`.
pub(crate) fn counted(many: impl Into<u64>, what: &str) -> String {
    match many.into() {
        1 => format!("1 {what}"),
        many => format!("{many} {what}s"),
    }
}

/// Changed paths that prose lists.
const SHOWN_PATHS: usize = 20;

/// The first changed paths, and how many there were: `total`, where the result
/// does not hold all of them.
fn write_changed(out: &mut String, paths: &[RepoPath], total: Option<usize>) -> std::fmt::Result {
    let total = total.unwrap_or(paths.len());
    if total == 0 {
        return Ok(());
    }
    writeln!(out, "changed ({total}):")?;
    let shown = paths.get(..SHOWN_PATHS).unwrap_or(paths);
    for path in shown {
        writeln!(out, "  {path}")?;
    }
    match total.saturating_sub(shown.len()) {
        0 => Ok(()),
        more => writeln!(out, "  … and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_changed_paths_are_counted_also_those_that_the_result_lost() {
        let text = |paths: usize, total| {
            let paths: Vec<RepoPath> = (0..paths)
                .map(|n| RepoPath::from_bytes(format!("p{n}")))
                .collect();
            let mut out = String::new();
            write_changed(&mut out, &paths, total).unwrap();
            out
        };
        assert_eq!(text(0, None), "");
        assert_eq!(text(2, None), "changed (2):\n  p0\n  p1\n");
        assert!(text(20, None).ends_with("  p19\n"));
        assert!(text(21, None).ends_with("  p19\n  … and 1 more\n"));
        let lost = text(1_875, Some(30_000));
        assert!(lost.starts_with("changed (30000):\n  p0\n"));
        assert!(lost.ends_with("  p19\n  … and 29980 more\n"));
    }

    /// The table of ends, as the command line promises it.
    #[test]
    fn every_end_has_its_verdict_and_exit_code() {
        use Cause::{
            Acceptance, AgentFail, Auth, Breach, Cancelled, Ceiling, Command, Configuration, Death,
            Gate, Held, Infrastructure, Parse, RepairExhausted, Script, SendBudget, SpendCap,
            SpendCeiling, UnsupportedOption,
        };
        let accepted = ["accepted_unpublished", "accepted"];
        for state in accepted {
            for cause in [None, Some(Held)] {
                assert_eq!(verdict(state, cause), (Verdict::Accepted, Exit::Done));
            }
        }
        for cause in [
            Acceptance,
            Parse,
            Gate,
            AgentFail,
            RepairExhausted,
            Command,
            Death,
            Breach,
            Ceiling,
            SendBudget,
            SpendCeiling,
        ] {
            assert_eq!(
                verdict("failed", Some(cause)),
                (Verdict::Rejected, Exit::Rejected)
            );
        }
        assert_eq!(
            verdict("cancelled", Some(Cancelled)),
            (Verdict::Rejected, Exit::Rejected)
        );
        for cause in [
            Auth,
            SpendCap,
            UnsupportedOption,
            Script,
            Infrastructure,
            Configuration,
        ] {
            let expected = (Verdict::None, Exit::Infrastructure);
            assert_eq!(verdict("failed", Some(cause)), expected);
            // Accepted, but the end could not be recorded.
            assert_eq!(verdict("accepted_unpublished", Some(cause)), expected);
        }
        assert_eq!(verdict("lost", None), (Verdict::None, Exit::Infrastructure));
    }
}
