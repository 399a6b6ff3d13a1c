//! Suggestions for misspelled names.

/// Returns the name closest to `name`, or `None` if all differ in more than a third of its
/// characters.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    let near = names.into_iter().map(|known| (edit_distance(name, known), known));
    near.filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// The Levenshtein distance of two strings, ignoring case.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_another_word_is_not() {
        let names = ["push_not", "push_filter_map", "order_joins"];
        assert_eq!(nearest("push_nott", names), Some("push_not"));
        assert_eq!(nearest("PUSH_NOT", names), Some("push_not"));
        assert_eq!(nearest("orderjoins", names), Some("order_joins"));
        assert_eq!(nearest("vacuum", names), None);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
