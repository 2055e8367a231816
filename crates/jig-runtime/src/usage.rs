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
    /// What earlier sends of the session turn out to have cost.
    pub late: Option<Late>,
}

/// The cost of sends that ended without figures, told by a later total.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Late {
    /// How many they were; not each of them need have cost something.
    pub sends: u32,
    /// US dollars, of all of them together; more than nothing.
    pub cost_usd: f64,
}

/// More than this, of one send or of a session, is no amount of money: sums of
/// such figures would be no numbers in the end.
pub const MOST_USD: f64 = 1e6;

/// Less than this between two sums of the same dollars is the rounding of
/// floating point.
const ROUNDING_USD: f64 = 1e-9;

/// The last cumulative figures a session reported.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ledger {
    cost_usd: Option<f64>,
    input_tokens: u64,
    output_tokens: u64,
    /// Sends without figures since the last total.
    silent: u32,
}

impl Ledger {
    /// Notes a send that ended without figures.
    pub const fn silent_send(&mut self) {
        self.silent = self.silent.saturating_add(1);
    }

    /// The cost of one send, and what earlier ones turn out to have cost, from
    /// what the CLI says of the send itself and from the session's total so
    /// far. Either may be missing.
    ///
    /// Where only the total is there, what silent sends cost is in the
    /// difference and cannot be told apart. Where it went down, or is no number,
    /// it says nothing ("unknown" rather than wrong).
    pub fn book(
        &mut self,
        of_send: Option<f64>,
        total_usd: Option<f64>,
    ) -> (Option<f64>, Option<Late>) {
        let is_amount = |usd: &f64| (0.0..=MOST_USD).contains(usd);
        let of_send = of_send.filter(is_amount);
        let before = self.cost_usd.unwrap_or(0.0);
        let Some(total) = total_usd.filter(is_amount) else {
            let known = of_send.map(|cost| (before + cost).min(MOST_USD));
            self.cost_usd = known.or(self.cost_usd);
            return (of_send, None);
        };
        self.cost_usd = Some(total);
        let sends = std::mem::take(&mut self.silent);
        let Some(cost) = of_send else {
            return ((total >= before).then_some(total - before), None);
        };
        let beyond = total - before - cost;
        let late = (sends > 0 && beyond > ROUNDING_USD).then_some(Late {
            sends,
            cost_usd: beyond,
        });
        (of_send, late)
    }

    /// The cost of one send from the session's total alone: see [`Self::book`].
    pub fn cost_of_send(&mut self, total_usd: f64) -> Option<f64> {
        self.book(None, Some(total_usd)).0
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

    #[test]
    fn what_a_total_has_beyond_its_sends_is_the_cost_of_those_that_said_nothing() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.book(Some(0.5), Some(0.5)), (Some(0.5), None));
        ledger.silent_send();
        ledger.silent_send();
        let late = Late {
            sends: 2,
            cost_usd: 0.25,
        };
        assert_eq!(ledger.book(Some(0.5), Some(1.25)), (Some(0.5), Some(late)));
        assert_eq!(ledger.book(Some(0.5), Some(1.75)), (Some(0.5), None));
        // Killed before anything was written down.
        ledger.silent_send();
        assert_eq!(ledger.book(Some(0.25), Some(2.0)), (Some(0.25), None));
        // Nobody was silent: the total is of something else as well.
        assert_eq!(ledger.book(Some(0.25), Some(9.0)), (Some(0.25), None));
        // Nor does a total that went down owe anything.
        ledger.silent_send();
        assert_eq!(ledger.book(Some(0.25), Some(0.25)), (Some(0.25), None));
    }

    #[test]
    fn a_total_that_is_missing_is_made_up_for() {
        let mut ledger = Ledger::default();
        ledger.silent_send();
        assert_eq!(ledger.book(Some(0.5), None), (Some(0.5), None));
        let late = Late {
            sends: 1,
            cost_usd: 1.0,
        };
        assert_eq!(ledger.book(Some(0.5), Some(2.0)), (Some(0.5), Some(late)));
        assert_eq!(ledger.book(None, None), (None, None));
        ledger.silent_send();
        assert_eq!(ledger.book(None, Some(2.5)), (Some(0.5), None));
        assert_eq!(ledger.book(Some(1.0), Some(3.5)), (Some(1.0), None));
    }

    proptest::proptest! {
        /// Whatever was silent and whatever each total held: what is booked is
        /// what was spent, but for what never shows in a total.
        #[test]
        fn what_is_booked_adds_up_to_the_last_total(
            sends in proptest::collection::vec((0_u32..1000, 0_u8..3), 1..40)
        ) {
            let mut ledger = Ledger::default();
            let (mut total, mut booked, mut pending) = (0.0, 0.0, 0.0);
            for (cents, how) in sends {
                let cost = f64::from(cents) / 100.0;
                match how {
                    // Answered.
                    0 => {
                        total += cost;
                        let (own, late) = ledger.book(Some(cost), Some(total));
                        booked += own.unwrap_or(0.0) + late.map_or(0.0, |late| late.cost_usd);
                        pending = 0.0;
                        proptest::prop_assert_eq!(own, Some(cost));
                    }
                    // Terminated: counted in the next total.
                    1 => {
                        total += cost;
                        pending += cost;
                        ledger.silent_send();
                    }
                    // Killed: lost.
                    _ => ledger.silent_send(),
                }
                proptest::prop_assert!((booked + pending - total).abs() < 1e-6);
            }
        }

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
