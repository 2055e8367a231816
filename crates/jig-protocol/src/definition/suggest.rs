//! "Did you mean": the nearest known word.

/// The word of `known` nearest to `word`, if one is near enough to be meant.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    // What is longer than this is no slip of the finger.
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase().replace('-', "_");
    let mut best: Option<(usize, &'k str)> = None;
    for candidate in known {
        let plain = candidate.to_lowercase().replace('-', "_");
        let distance = distance(&word, &plain);
        let most = plain.chars().count().max(3) / 3;
        if distance <= most && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Edits between two words: insert, delete, replace, or swap of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replace = above[j] + usize::from(x != y);
            let mut least = replace.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *y && b[j - 1] == *x {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["on_fail", "owner", "command", "if", "gates"];
        assert_eq!(nearest("on_fial", &known), Some("on_fail"));
        assert_eq!(nearest("on-fail", &known), Some("on_fail"));
        assert_eq!(nearest("onfail", &known), Some("on_fail"));
        assert_eq!(nearest("Gates", &known), Some("gates"));
        assert_eq!(nearest("gate", &known), Some("gates"));
        assert_eq!(nearest("fi", &known), Some("if"));
        assert_eq!(nearest("resume_from", &known), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), &known), None);
    }
}
