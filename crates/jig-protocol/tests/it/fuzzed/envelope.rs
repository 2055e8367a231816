//! The extraction of an envelope from an agent's answer.

use jig_protocol::envelope::Envelope;

pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let envelope = match Envelope::extract(&text) {
        Ok(envelope) => envelope,
        Err(error) => {
            assert!(!error.0.is_empty() && error.0.len() < 1_000, "{error}");
            return;
        }
    };
    let raw = envelope.raw.get();
    assert!(text.contains(raw), "not what the agent wrote: {raw}");
    assert_eq!(
        envelope.fields.get("status").and_then(|v| v.as_str()),
        Some(envelope.status.as_str())
    );
    let again = Envelope::extract(raw).expect("the object alone is the same answer");
    assert_eq!(again.raw.get(), raw);
    assert_eq!(again.fields, envelope.fields);
    let followed = Envelope::extract(&format!("{text}\nThat is all.")).map(|e| e.fields);
    assert_eq!(followed.as_ref(), Ok(&envelope.fields), "prose follows");

    // Cut anywhere, it is no answer: not even where an inner object is whole,
    // and not because a whole answer came before it.
    let step = raw.len() / 64 + 1;
    for cut in (1..raw.len()).step_by(step) {
        if raw.is_char_boundary(cut) {
            let part = &raw[..cut];
            assert!(Envelope::extract(part).is_err(), "{part}");
            let after_another = format!("{raw}\n{part}");
            assert!(
                Envelope::extract(&after_another).is_err(),
                "{after_another}"
            );
        }
    }
    // Inside of another object it is a quotation.
    let quoted = format!("{{\"quoted\": {raw}}}");
    assert!(Envelope::extract(&quoted).is_err(), "{quoted}");
}
