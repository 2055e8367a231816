//! What needs more than one object to judge: references, edges, groups, policy.

mod chain;
mod edges;
mod group;
mod policy;
mod prompts;
mod writers;

use super::cursor::Context;
use super::decode::Draft;
pub(super) use policy::acceptance_check;

/// Judges a draft as a whole.
pub(super) fn check(cx: &mut Context<'_>, draft: &Draft) {
    let chain = chain::Chain::new(draft);
    chain::names(cx, draft);
    chain::owners(cx, draft);
    chain::runtimes(cx, draft);
    prompts::check(cx, draft);
    edges::check(cx, draft, &chain);
    group::check(cx, draft, &chain);
    writers::check(cx, draft, &chain);
    policy::acceptance(cx, draft, &chain);
    policy::ci(cx, draft, &chain);
}
