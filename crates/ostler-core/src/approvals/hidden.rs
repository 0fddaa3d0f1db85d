//! Invisible characters, characters that look like a space, and characters that change how others are displayed. In
//! requests they appear as code points: a command must not look different from what runs.

/// Ranges, both ends included. `web/src/text/hidden.ts` has the same list.
const HIDDEN: [(u32, u32); 24] = [
    (0x0000, 0x0008),
    (0x000b, 0x001f),
    (0x007f, 0x00a0),
    (0x00ad, 0x00ad),
    (0x034f, 0x034f),
    (0x061c, 0x061c),
    (0x115f, 0x1160),
    (0x1680, 0x1680),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x2000, 0x200f),
    (0x2028, 0x202f),
    (0x205f, 0x206f),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xd800, 0xdfff),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfffb),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0000, 0xe0fff),
];

/// Appends a character, as it is or as its code point (`⟨U+202E⟩`).
pub(super) fn show(shown: &mut String, character: char) {
    let code = u32::from(character);
    if HIDDEN.iter().any(|(from, to)| (*from..=*to).contains(&code)) {
        shown.push_str(&format!("⟨U+{code:04X}⟩"));
    } else {
        shown.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: a range that is changed in one of the two lists.
    #[test]
    fn the_list_of_hidden_characters_equals_that_of_the_page() {
        let page = include_str!("../../../../web/src/text/hidden.ts");
        let list = page.split("HIDDEN: [number, number][] = [").nth(1).unwrap();
        let list = list.split("];").next().unwrap();
        let number = |text: &str| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16);
        let pairs: Vec<(u32, u32)> = list
            .split('[')
            .filter_map(|pair| pair.split(']').next()?.split_once(','))
            .map(|(from, to)| (number(from).unwrap(), number(to).unwrap()))
            .collect();
        assert_eq!(pairs, HIDDEN);
    }

    #[test]
    fn every_invisible_or_reordering_character_is_shown_as_its_code_point() {
        let hidden = [
            '\u{0}',
            '\u{7}',
            '\r',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{a0}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{202a}',
            '\u{202e}',
            '\u{2028}',
            '\u{2066}',
            '\u{2069}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e01ef}',
        ];
        for character in hidden {
            let mut shown = String::new();
            show(&mut shown, character);
            assert_eq!(shown, format!("⟨U+{:04X}⟩", u32::from(character)));
        }
        let mut shown = String::new();
        "ls é 中 🐴\t\n".chars().for_each(|character| show(&mut shown, character));
        assert_eq!(shown, "ls é 中 🐴\t\n");
    }
}
