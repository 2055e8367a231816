//! The parser of scripts.

use jig_runtime_scripted::script::{End, Script, Step};

pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let script = match Script::parse(text) {
        Ok(script) => script,
        Err(error) => {
            let shown = error.to_string();
            assert!(!shown.is_empty());
            return;
        }
    };
    assert_eq!(Script::parse(text).as_ref(), Ok(&script));
    for step in script.roles.values().flatten() {
        assert!(step.end != End::Ok || step.emit.is_some());
        assert!(step.setsid <= step.spawn.is_some());
        assert!(step.run_must_succeed <= step.run.is_some());
        sent(step);
    }
}

/// The way of a step to the process that plays it is one line of JSON.
fn sent(step: &Step) {
    let line = serde_json::to_string(step).unwrap();
    assert!(!line.contains('\n'));
    assert_eq!(
        &serde_json::from_str::<Step>(&line).unwrap(),
        step,
        "{line}"
    );
}
