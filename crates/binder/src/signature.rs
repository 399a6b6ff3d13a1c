//! Shortens the planner's errors about function arguments, which list every signature tried, to one
//! line.

/// Returns the short message; `None` if the text is about something else.
pub(crate) fn message(text: &str) -> Option<String> {
    none_of_many(text).or_else(|| no_coercion(text)).or_else(|| only_one(text))
}

/// Summarizes several signatures, none of which matches.
fn none_of_many(text: &str) -> Option<String> {
    let (name, complaints) = function(text)?;
    let complaints = complaints.strip_prefix("failed to match any signature, errors: ")?;
    let (mut types, mut given_type, mut counts, mut given_count) =
        (Vec::new(), None, Vec::new(), None);
    for complaint in
        complaints.split("Error during planning: ").filter_map(|one| Some(function(one)?.1))
    {
        let complaint = complaint.trim_end_matches([',', '.', ' ']);
        if let Some((wanted, given)) = difference(complaint, "requires ", ", but received ") {
            push(&mut types, wanted);
            given_type = given.split(" (DataType").next();
        } else if let Some((wanted, given)) =
            difference(complaint, "expects ", " arguments but received ")
        {
            push(&mut counts, wanted);
            given_count = Some(given);
        }
    }
    counts.sort_unstable();
    match (given_type, given_count) {
        (Some(given), _) => Some(format!(
            "function {name} takes {}, not {given}; cast the argument",
            types.join(" or ")
        )),
        (None, Some(given)) => {
            Some(format!("function {name} takes {} arguments, not {given}", counts.join(" or ")))
        }
        (None, None) => None,
    }
}

/// Extracts the message of a function that checks its own arguments.
fn no_coercion(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("user-defined coercion failed with: ")?;
    // `External error` wraps an error of this engine.
    let rest = ["Error during planning: ", "External error: "]
        .iter()
        .find_map(|kind| rest.strip_prefix(kind))
        .unwrap_or(rest);
    Some(rest.split(". No function matches").next().unwrap_or(rest).to_string())
}

/// Summarizes a single signature.
fn only_one(text: &str) -> Option<String> {
    let (said, _) = text.split_once(" No function matches the given name and argument types")?;
    let said = said.trim_end_matches('.');
    Some(format!("{said}; cast the argument"))
}

/// Splits `Function 'name' rest` into the name and the rest.
fn function(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix("Error during planning: ").unwrap_or(text);
    text.strip_prefix("Function '")?.split_once("' ")
}

/// Splits a complaint into the wanted and the given part.
fn difference<'a>(text: &'a str, wants: &str, gives: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(wants)?.split_once(gives)
}

fn push<'a>(list: &mut Vec<&'a str>, one: &'a str) {
    if !list.contains(&one) {
        list.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::message;

    #[test]
    fn complaints_become_a_line() {
        let series = "Function 'range' failed to match any signature, errors: Error during planning: Function 'range' expects 1 \
                      arguments but received 2,Error during planning: Function 'range' requires Int64, but received String \
                      (DataType: Utf8).,Error during planning: Function 'range' requires Timestamp, but received String (DataType: Utf8).";
        assert_eq!(
            message(series).unwrap(),
            "function range takes Int64 or Timestamp, not String; cast the argument"
        );
        let counts = "Function 'substr' failed to match any signature, errors: Error during planning: Function 'substr' expects 3 \
                      arguments but received 4,Error during planning: Function 'substr' expects 2 arguments but received 4";
        assert_eq!(message(counts).unwrap(), "function substr takes 2 or 3 arguments, not 4");
        let own = "Function 'sum' user-defined coercion failed with: Error during planning: sum does not take string; cast it to a \
                   number. No function matches the given name and argument types 'sum(Utf8)'. You might need";
        assert_eq!(message(own).unwrap(), "sum does not take string; cast it to a number");
        let ours = "Function 'power' user-defined coercion failed with: External error: function power does not take (string). No \
                    function matches the given name and argument types 'power(Utf8)'.";
        assert_eq!(message(ours).unwrap(), "function power does not take (string)");
        let one = "Function 'abs' expects Numeric but received String. No function matches the given name and argument types \
                   'abs(Utf8)'. You might need to add explicit type casts.\n\tCandidate functions:\n\tabs(Numeric(1))";
        assert_eq!(
            message(one).unwrap(),
            "Function 'abs' expects Numeric but received String; cast the argument"
        );
        assert_eq!(message("column x must be a number"), None);
    }
}
