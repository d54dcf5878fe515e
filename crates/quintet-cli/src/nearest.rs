//! "Did you mean …?"

/// The candidate most like `word`, if any is like it at all.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let scored = candidates.into_iter().map(|name| (strsim::jaro_winkler(word, name), name));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score > 0.7).map(|(_, name)| name)
}

/// Advice for an unknown name out of a list: the nearest one, or all of them.
pub(crate) fn advice<'a>(
    flag: &str,
    word: &str,
    names: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    match nearest(word, names.clone()) {
        Some(name) => format!("did you mean {flag} {name}?"),
        None => format!("choose one of: {}", names.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let names = ["region", "reclaim", "rivals"];
        assert_eq!(nearest("rivls", names), Some("rivals"));
        assert_eq!(nearest("reclaims", names), Some("reclaim"));
        assert_eq!(nearest("zzz", names), None);
    }
}
