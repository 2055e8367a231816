//! Where randomness comes from: passed in, like time.

use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::time::Timestamp;
use jig_protocol::token::LeaseToken;

/// A source of unpredictable bytes.
pub trait RandomSource: Send + Sync {
    /// Fills `bytes`. Must not fail: an implementation that cannot deliver
    /// panics rather than hand out predictable bytes.
    fn fill(&self, bytes: &mut [u8]);
}

pub(crate) fn run_id(random: &dyn RandomSource, now: Timestamp) -> RunId {
    RunId::from_parts(now, array(random))
}

pub(crate) fn job_id(random: &dyn RandomSource, now: Timestamp) -> JobId {
    JobId::from_parts(now, array(random))
}

pub(crate) fn attempt_id(random: &dyn RandomSource, now: Timestamp) -> AttemptId {
    AttemptId::from_parts(now, array(random))
}

pub(crate) fn lease_token(random: &dyn RandomSource) -> LeaseToken {
    LeaseToken::from_random(array(random))
}

fn array<const N: usize>(random: &dyn RandomSource) -> [u8; N] {
    let mut bytes = [0; N];
    random.fill(&mut bytes);
    bytes
}
