//! Questions made from sentences.

use super::super::question::Question;

#[track_caller]
fn check(about: &str, text: &str, header: &str, options: &[&str]) {
    let question = Question::about(Some(about));
    assert_eq!((question.text.as_str(), question.header.as_str()), (text, header));
    assert_eq!(question.options, options);
}

#[test]
fn a_described_question_becomes_a_direct_question() {
    check(
        "which colour I like: red, green or blue",
        "Which colour do you like?",
        "Colour",
        &["red", "green", "blue"],
    );
    check("whether I like tea", "Do you like tea?", "Question", &["Yes", "No"]);
    check(
        "whether to use tabs or spaces",
        "Should I use tabs or spaces?",
        "Question",
        &["tabs", "spaces"],
    );
    check(": tea or coffee?", "Tea or coffee?", "Question", &["tea", "coffee"]);
    check(
        "what my name is",
        "What your name is?",
        "Question",
        &["You decide", "I would rather not say"],
    );
    check(
        "which internationalisation: a, a, 'b, c'",
        "Which internationalisation?",
        "Internationa",
        &["a", "b, c"],
    );
}

#[test]
fn at_most_four_answers_are_offered() {
    let question = Question::about(Some("which number: 1, 2, 3, 4, 5 or 6"));
    assert_eq!(question.options, ["1", "2", "3", "4"]);
    assert_eq!(question.n_left_out, 2);
}

#[test]
fn the_answer_is_found_in_the_result() {
    let question = Question::about(None);
    let result = format!(
        "Your questions have been answered: \"{}\"=\"dark \"navy\" blue\". Go on.",
        question.text
    );
    assert_eq!(question.answer(&result).as_deref(), Some("dark \"navy\" blue"));
    let own = format!("{}\nThe user answers: green\nThe user adds: but dark\n", question.text);
    assert_eq!(question.answer(&own).as_deref(), Some("green"));
    let none = format!("{}\nThe user answers: (no answer; do not assume one)\n", question.text);
    assert_eq!(question.answer(&none), None);
    assert_eq!(question.answer("The user did not answer the questions."), None);
}
