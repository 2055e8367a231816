//! The exchange with an agent of the protocol.

use jig_runtime_acp::{AcpDialect, Plan};

#[path = "../../../../jig-testkit/fuzz/stream.rs"]
mod any;

pub(crate) fn check(data: &[u8]) {
    let make = |continues| {
        let plan = Plan {
            work_tree: "/tree".into(),
            prompt: "do it".into(),
            continues,
            ..Plan::default()
        };
        AcpDialect::new(plan, std::time::Duration::from_secs(60))
    };
    // No line says by itself which session answers.
    any::check(data, make, |_| None);
}
