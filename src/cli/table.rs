//! Tables of text, with columns as wide as their widest cell, and text that a terminal may show.

/// Two blanks separate columns, and lines have no trailing blanks. A column whose heading begins
/// with `>` is right-aligned, and the sign is not shown.
pub(super) fn format(heads: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> =
        heads.iter().map(|head| head.strip_prefix('>').unwrap_or(head).to_owned()).collect();
    let lines = || std::iter::once(&head).chain(rows);
    let width = |at: usize| {
        let cells = lines().filter_map(|line| line.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut text = String::new();
    for line in lines() {
        let cells = line.iter().zip(&widths).zip(heads).map(|((cell, width), head)| {
            if head.starts_with('>') {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Replaces control characters: a token's creator chooses its symbol, and could send escape
/// sequences to the terminal with it.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows =
            [vec!["buy".to_owned(), "1.5".to_owned()], vec!["sell".to_owned(), "12".to_owned()]];
        let text = format(&["SIDE", ">AMOUNT"], &rows);
        assert_eq!(text, "SIDE  AMOUNT\nbuy      1.5\nsell      12\n");
        assert_eq!(format(&["A"], &[]), "A\n");
    }
}
