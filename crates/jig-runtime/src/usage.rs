//! What sends use, and the ledger that turns cumulative figures into figures
//! per send.

/// What one send used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars; `None` when the runtime does not say.
    pub cost_usd: Option<f64>,
    /// Tokens in the model's context after the send; 0 when unknown.
    pub context_tokens: u64,
}

/// The last cumulative figures a session reported.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ledger {
    cost_usd: Option<f64>,
    input_tokens: u64,
    output_tokens: u64,
}

impl Ledger {
    /// The cost of one send from the session's total so far; `None` ("unknown"
    /// rather than wrong) when the total went down or is no number.
    pub fn cost_of_send(&mut self, total_usd: f64) -> Option<f64> {
        if !total_usd.is_finite() || total_usd < 0.0 {
            return None;
        }
        let before = self.cost_usd.replace(total_usd).unwrap_or(0.0);
        (total_usd >= before).then_some(total_usd - before)
    }

    /// The tokens of one send, read and written, from the session's totals so
    /// far; `None` ("unknown" rather than wrong) when a total went down.
    pub fn tokens_of_send(&mut self, input: u64, output: u64) -> Option<(u64, u64)> {
        let read = input.checked_sub(self.input_tokens);
        let written = output.checked_sub(self.output_tokens);
        (self.input_tokens, self.output_tokens) = (input, output);
        read.zip(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cumulative_costs_become_costs_per_send() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.cost_of_send(0.5), Some(0.5));
        assert_eq!(ledger.cost_of_send(0.75), Some(0.25));
        assert_eq!(ledger.cost_of_send(0.75), Some(0.0));
    }

    #[test]
    fn a_total_that_goes_down_is_unknown_and_the_next_one_counts_from_there() {
        let mut ledger = Ledger::default();
        ledger.cost_of_send(2.0);
        assert_eq!(ledger.cost_of_send(0.5), None);
        assert_eq!(ledger.cost_of_send(0.75), Some(0.25));
    }

    #[test]
    fn what_is_no_amount_changes_nothing() {
        let mut ledger = Ledger::default();
        ledger.cost_of_send(1.0);
        for odd in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(ledger.cost_of_send(odd), None);
        }
        assert_eq!(ledger.cost_of_send(1.5), Some(0.5));
    }

    #[test]
    fn tokens_are_unknown_when_a_total_goes_down() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.tokens_of_send(100, 20), Some((100, 20)));
        assert_eq!(ledger.tokens_of_send(250, 45), Some((150, 25)));
        assert_eq!(ledger.tokens_of_send(50, 50), None);
        assert_eq!(ledger.tokens_of_send(60, 51), Some((10, 1)));
    }

    proptest::proptest! {
        #[test]
        fn no_send_ever_costs_less_than_nothing(totals in proptest::collection::vec(proptest::num::f64::ANY, 0..20)) {
            let mut ledger = Ledger::default();
            for total in totals {
                if let Some(cost) = ledger.cost_of_send(total) {
                    proptest::prop_assert!(cost >= 0.0 && cost.is_finite());
                }
            }
        }
    }
}
