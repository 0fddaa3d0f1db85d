//! A small aligned table: the first column to the left, figures to the right.

/// Rows of equal length as text, one line each.
pub(crate) fn render<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    });
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let cell =
                if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
            line.push_str(&cell);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn figures_are_aligned_to_the_right() {
        let rows = [["", "ms"], ["decode", "7"], ["x", "120"]].map(|row| row.map(str::to_owned));
        assert_eq!(super::render(&rows), "         ms\ndecode    7\nx       120\n");
    }
}
