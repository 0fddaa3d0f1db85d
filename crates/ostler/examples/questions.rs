//! Answer the agent's questions. They are not permission requests: the user chooses between options.

use ostler::{Answers, QuestionRequest};

/// Chooses the last option of every question. A program with a user would show the options.
async fn answer(asked: QuestionRequest) -> Answers {
    let mut answers = Answers::new();
    for question in &asked.questions {
        let labels: Vec<&str> = question.options.iter().map(|it| it.label.as_str()).collect();
        println!("{} ({})", question.question, labels.join(", "));
        answers = answers.answer(&question.question, labels.last().copied());
    }
    answers
}

#[tokio::main]
async fn main() -> Result<(), ostler::Error> {
    let options = ostler::Options::new().on_question(answer);
    let prompt = "ask me which colour I like: red, green or blue";
    let result = ostler::prompt(prompt, options).await?;
    println!("{}", result.result.unwrap_or_default());
    Ok(())
}
