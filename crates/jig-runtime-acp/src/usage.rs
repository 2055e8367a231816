//! What a send used, as far as the agent says so.

use jig_runtime::{Session, Usage};
use serde_json::Value;

/// Figures heard during a send.
#[derive(Debug, Default)]
pub(crate) struct Used {
    /// Tokens of the prompt: read, written.
    tokens: Option<(u64, u64)>,
    /// What the agent has added up, in US dollars.
    total_usd: Option<f64>,
    context: u64,
}

impl Used {
    /// A `usage_update`.
    pub(crate) fn update(&mut self, update: &Value) {
        if let Some(used) = update["used"].as_u64() {
            self.context = used;
        }
        let cost = &update["cost"];
        if cost["currency"] == "USD"
            && let Some(total) = cost["amount"].as_f64()
        {
            self.total_usd = Some(total);
        }
    }

    /// The result of the prompt.
    pub(crate) fn result(&mut self, result: &Value) {
        let quota = &result["_meta"]["quota"]["token_count"];
        self.tokens = tokens(&result["usage"], ["inputTokens", "outputTokens"])
            .or_else(|| tokens(quota, ["input_tokens", "output_tokens"]));
    }

    /// The figures of this send. `continued` says whether an earlier process
    /// has worked on the session.
    pub(crate) fn of_send(&self, session: &mut Session, continued: bool) -> Option<Usage> {
        let cost_usd = self
            .total_usd
            .and_then(|total| cost(session, total, continued));
        if self.tokens.is_none() && cost_usd.is_none() {
            return None;
        }
        let (input_tokens, output_tokens) = self.tokens.unwrap_or_default();
        Some(Usage {
            input_tokens,
            output_tokens,
            cost_usd,
            context_tokens: self.context,
            late: None,
        })
    }
}

fn tokens(figures: &Value, names: [&str; 2]) -> Option<(u64, u64)> {
    let [input, output] = names.map(|name| figures[name].as_u64());
    Some((input?, output?))
}

/// The cost of a send from what the agent added up. Some agents add up a
/// session, some a process; where the two cannot be told apart, it is unknown.
fn cost(session: &mut Session, total: f64, continued: bool) -> Option<f64> {
    if !total.is_finite() || total < 0.0 {
        return None;
    }
    let grown = session.ledger.cost_of_send(total);
    match grown {
        grown if !continued => grown,
        // Less than before: the count began anew with this process.
        None => Some(total),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn costing(amount: f64) -> Used {
        let mut used = Used::default();
        used.update(&json!({"used": 7, "cost": {"amount": amount, "currency": "USD"}}));
        used
    }

    #[test]
    fn tokens_are_of_the_prompt_and_missing_ones_are_unmetered() {
        let mut session = Session::new("s");
        let mut used = Used::default();
        assert_eq!(used.of_send(&mut session, false), None);
        used.result(&json!({"usage": null}));
        used.update(&json!({"used": 5, "cost": {"amount": 1, "currency": "EUR"}}));
        assert_eq!(used.of_send(&mut session, false), None);
        used.result(&json!({"usage": {"inputTokens": 10, "outputTokens": 2}}));
        let expected = Usage {
            input_tokens: 10,
            output_tokens: 2,
            cost_usd: None,
            context_tokens: 5,
            late: None,
        };
        assert_eq!(used.of_send(&mut session, false), Some(expected));
        used.result(
            &json!({"_meta": {"quota": {"token_count": {"input_tokens": 3, "output_tokens": 1}}}}),
        );
        assert_eq!(used.of_send(&mut session, false).unwrap().input_tokens, 3);
        used.result(&json!({"usage": {"inputTokens": -1, "outputTokens": 2}}));
        assert_eq!(used.of_send(&mut session, false), None);
    }

    #[test]
    fn a_cost_is_known_or_unknown_and_never_a_guess() {
        let mut session = Session::new("s");
        let mut send = |amount, continued| {
            costing(amount)
                .of_send(&mut session, continued)
                .and_then(|usage| usage.cost_usd)
        };
        assert_eq!(send(0.5, false), Some(0.5));
        // 0.75 of the session, or of this process? Nobody can tell.
        assert_eq!(send(0.75, true), None);
        assert_eq!(send(0.25, true), Some(0.25));
        assert_eq!(send(f64::NAN, true), None);
        assert_eq!(send(-1.0, true), None);
    }

    proptest::proptest! {
        #[test]
        fn no_send_ever_costs_less_than_nothing(
            totals in proptest::collection::vec((proptest::num::f64::ANY, proptest::bool::ANY), 0..20)
        ) {
            let mut session = Session::new("s");
            for (total, continued) in totals {
                let usage = costing(total).of_send(&mut session, continued);
                if let Some(cost) = usage.and_then(|usage| usage.cost_usd) {
                    proptest::prop_assert!(cost >= 0.0 && cost.is_finite());
                }
            }
        }
    }
}
