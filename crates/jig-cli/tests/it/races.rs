//! Runs that begin at the same moment.

use std::sync::Barrier;

use crate::env::finish;
use crate::trial::{DONE, ONE_AGENT, Trial, trace};

#[test]
fn runs_that_begin_at_once_on_no_data_directory_all_finish() {
    const AT_ONCE: usize = 2;
    for _ in 0..jig_testkit::repeat() {
        let script = format!("roles: {{builder: [{{write: {{src/a.txt: \"two\\n\"}}, {DONE}}}]}}");
        let trial = Trial::new(ONE_AGENT, &script);
        assert!(!trial.env.data().exists());
        let barrier = Barrier::new(AT_ONCE);
        let mut reports = std::thread::scope(|scope| {
            let run = || {
                barrier.wait();
                let done = finish(trial.start());
                done.expect(0);
                assert!(!done.stderr.contains("note:"), "{}", done.stderr);
                done.json()
            };
            let started: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(run)).collect();
            let join = |run: std::thread::ScopedJoinHandle<'_, _>| run.join().unwrap();
            started
                .into_iter()
                .map(join)
                .collect::<Vec<serde_json::Value>>()
        });
        reports.sort_by_key(|report| report["attempt_id"].to_string());
        let attempts = trial.attempts();
        assert_eq!(attempts.len(), AT_ONCE);
        for (report, attempt) in reports.iter().zip(&attempts) {
            let id = report["attempt_id"].as_str().unwrap();
            assert!(attempt.ends_with(id));
            trial.assert_whole_record(id);
            trial.assert_tidy(attempt);
            assert_eq!(trace(attempt)[0]["payload"]["attempt_id"], id);
            // Each has a branch of its own, with its own commit.
            let branch = report["branch"].as_str().unwrap();
            let commit = trial.env.git(&trial.repo, &["rev-parse", branch]);
            assert_eq!(commit.trim(), report["commit"]);
            let content = trial
                .env
                .git(&trial.repo, &["show", &format!("{branch}:src/a.txt")]);
            assert_eq!(content, "two\n");
        }
        assert_ne!(reports[0]["branch"], reports[1]["branch"]);
        trial.assert_nobody_left();
    }
}
