//! What jig counts is what the model served, over sends that are answered,
//! terminated and killed.

use jig_runtime::{SendEnd, Session};
use jig_testkit::model::{Step, Usage, Vendor};
use serde_json::json;

use super::lab::lab;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Answered,
    /// The agent has a tool run, then answers: two requests.
    Worked,
    /// TERM, from a tool of its own: it writes down what it spent.
    Terminated,
    /// KILL, likewise: it writes down nothing.
    Killed,
}

use Way::{Answered, Killed, Terminated, Worked};

/// Twenty sends of one conversation. What said nothing is followed by one that
/// says its total, so that it can be told which of them it was.
const WAYS: [Way; 20] = [
    Answered, Worked, Terminated, Answered, Killed, Worked, Answered, Terminated, Worked, Killed,
    Answered, Terminated, Answered, Worked, Killed, Answered, Answered, Terminated, Worked,
    Answered,
];

fn shell(command: &str) -> Step {
    Step::tool("Bash", json!({ "command": command }))
}

/// The answer number `n` costs `n` times as much as the first.
fn used(step: Step, n: u64) -> Step {
    step.usage(Usage {
        input: 1_000 * n,
        output: 50 * n,
        ..Usage::default()
    })
}

#[tokio::test]
async fn twenty_sends_are_counted_exactly_and_what_was_stopped_is_told_late() {
    let mut steps = Vec::new();
    // Units of the first answer: by way of the send that it belongs to.
    let mut units = Vec::new();
    for way in WAYS {
        let mut unit = 0;
        let mut push = |step: Step| {
            let n = steps.len() as u64 + 1;
            steps.push(used(step, n));
            unit += n;
        };
        match way {
            Answered => push(Step::text("done")),
            Worked => {
                push(shell("echo worked"));
                push(Step::text("done"));
            }
            Terminated => push(shell("kill -TERM $PPID; tail -f /dev/null")),
            Killed => push(shell("kill -KILL $PPID")),
        }
        units.push(unit);
    }
    let Some(lab) = lab(steps) else { return };
    let mut session = Session::new("attempt-builder");
    let mut one = None;
    let (mut late, mut pending) = (0, 0);
    let mut tokens = (0, 0);
    for (at, way) in WAYS.into_iter().enumerate() {
        let sent = lab.send(&mut session).await;
        let report = &sent.report;
        if matches!(way, Terminated | Killed) {
            assert!(
                matches!(report.end, SendEnd::Failed { .. }),
                "{at}: {report:?}"
            );
            assert_eq!(report.usage, None, "{at}: {way:?} has figures");
            if way == Terminated {
                pending += units[at];
            }
            continue;
        }
        let usage = report.usage.unwrap_or_else(|| panic!("{at}: {report:?}"));
        let cost = usage.cost_usd.unwrap();
        let one = *one.get_or_insert(cost);
        assert!(one > 0.0);
        // To the dollar's billionth: sums of floating point are not exact.
        let same = |usd: f64, units: u64| (usd - one * units as f64).abs() < 1e-9;
        assert!(
            same(cost, units[at]),
            "{at}: {cost} for {} of {one}",
            units[at]
        );
        let told = usage.late.map_or(0.0, |late| late.cost_usd);
        assert!(
            same(told, pending),
            "{at}: {told} late for {pending} of {one}"
        );
        late += usage.late.map_or(0, |late| late.sends);
        pending = 0;
        tokens = (
            tokens.0 + usage.input_tokens,
            tokens.1 + usage.output_tokens,
        );
    }
    assert_eq!(lab.server.steps_left(), 0);
    assert_eq!(session.sends, 20);
    let terminated = WAYS.iter().filter(|way| **way == Terminated).count();
    assert_eq!(late as usize, terminated);
    // Of the tokens, what the sends with figures used.
    let metered: u64 = WAYS
        .iter()
        .zip(&units)
        .filter(|(way, _)| matches!(way, Answered | Worked))
        .map(|(_, units)| units)
        .sum();
    assert_eq!(tokens, (1_000 * metered, 50 * metered));
    let served = lab.server.usage_served(Vendor::Anthropic);
    let all: u64 = units.iter().sum();
    assert_eq!((served.input, served.output), (1_000 * all, 50 * all));
    lab.assert_nobody_left();
}
