//! Columns of text, as wide as their widest cell.

/// How a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Two blanks between columns, none at the end of a line.
pub(super) fn format(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain(columns.get(at).map(|(head, _)| head.chars().count())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let head: Vec<String> = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        let cells =
            row.iter().zip(&widths).zip(columns).map(|((cell, width), (_, align))| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows =
            [vec!["buy".to_owned(), "1.5".to_owned()], vec!["sell".to_owned(), "12".to_owned()]];
        let text = format(&[("SIDE", Align::Left), ("AMOUNT", Align::Right)], &rows);
        assert_eq!(text, "SIDE  AMOUNT\nbuy      1.5\nsell      12\n");
        assert_eq!(format(&[("A", Align::Left)], &[]), "A\n");
    }
}
