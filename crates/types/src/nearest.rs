//! Suggestions for misspelled names.

/// The number of known names that a message lists.
const LISTED_MAX: usize = 12;

/// Returns the name closest to `name`, or `None` if all differ in more than a third of its
/// characters.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    // A name of one character is near to itself only, or each other such name would be a hint.
    let most = (length / 3).max(1).min(length.saturating_sub(1));
    let near = names.into_iter().map(|known| (edit_distance(name, known), known));
    near.filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// The end of a message about an unknown name, `; did you mean 'region'?`; empty if no name is
/// near.
pub fn did_you_mean<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, names).map_or_else(String::new, |near| format!("; did you mean '{near}'?"))
}

/// The end of a message about an unknown name: the nearest name, and the known names after `label`.
///
/// More than twelve names are cut, and left out next to a suggestion. Without names it is empty.
///
/// ```
/// use tessera_types::suggest;
///
/// let columns = ["id", "region"];
/// assert_eq!(
///     suggest("regoin", "known columns are", &columns),
///     "; did you mean 'region'? known columns are id, region"
/// );
/// assert_eq!(suggest("price", "known columns are", &columns), "; known columns are id, region");
/// ```
pub fn suggest<S: AsRef<str>>(name: &str, label: &str, names: &[S]) -> String {
    let hint = did_you_mean(name, names.iter().map(AsRef::as_ref));
    if names.is_empty() || (!hint.is_empty() && names.len() > LISTED_MAX) {
        return hint;
    }
    let listed = names.iter().take(LISTED_MAX).map(AsRef::as_ref).collect::<Vec<&str>>();
    let before = if hint.is_empty() { ";" } else { &hint };
    let more = if names.len() > LISTED_MAX { ", …" } else { "" };
    format!("{before} {label} {}{more}", listed.join(", "))
}

/// The number of edits between two strings, ignoring case: an edit inserts, removes or replaces a
/// character, or swaps two neighbors.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = row[j] + usize::from(x != y);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
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
        assert_eq!(nearest("naem", ["id", "name"]), Some("name"));
        assert_eq!(nearest("x", ["a", "b"]), None);
        assert_eq!(nearest("A", ["a", "b"]), Some("a"));
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("regoin", "region"), 1);
    }

    #[test]
    fn a_long_list_is_cut_and_left_out_next_to_a_suggestion() {
        let names: Vec<String> = (0..14).map(|i| format!("column_{i}")).collect();
        assert_eq!(
            suggest("price", "known columns are", &names),
            format!("; known columns are {}, …", names[..12].join(", "))
        );
        assert_eq!(suggest("colum_3", "known columns are", &names), "; did you mean 'column_3'?");
        assert_eq!(suggest::<&str>("price", "known columns are", &[]), "");
    }
}
