//! Strings that contain `${{ … }}`, which cannot be checked before they are evaluated.

/// Whether a text contains an expression.
pub(super) fn has(text: &str) -> bool {
    text.find("${{").is_some_and(|start| text[start..].contains("}}"))
}

/// Whether a text is a single expression, whose value keeps its type.
pub(super) fn is_whole(text: &str) -> bool {
    let inside = text.trim().strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}"));
    inside.is_some_and(|inside| !inside.contains("${{") && !inside.contains("}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_expression_is_one() {
        let check = |text: &str, any: bool, whole: bool| {
            assert_eq!((has(text), is_whole(text)), (any, whole), "{text}");
        };
        check("${{ params.n }}", true, true);
        check("${{ params.n }}GiB", true, false);
        check("${{ a }}${{ b }}", true, false);
        check("${ a }", false, false);
        check("${{ a", false, false);
        check("}} ${{", false, false);
    }
}
