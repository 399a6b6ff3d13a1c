//! Text in XML.

/// Escapes a text for an element or an attribute.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Replaces the entities of an escaped text.
pub(crate) fn unescape(text: &str) -> String {
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'");
    let text = text.replace("&#9;", "\t").replace("&#10;", "\n").replace("&#13;", "\r");
    // The last: its result may look like another entity.
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_texts_come_back() {
        for text in ["a<b>&\"c\"", "&lt;", "&amp;#10;", ""] {
            assert_eq!(unescape(&escape(text)), text);
        }
        assert_eq!(unescape("a&apos;&#10;&#9;&#13;"), "a'\n\t\r");
    }
}
