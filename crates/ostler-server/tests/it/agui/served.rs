//! AG-UI as a part of the whole server.

use ostler_testkit::{Script, reply as model, when};

use super::stage::{input, user};
use crate::desk::Desk;

#[tokio::test]
async fn the_server_serves_agui_to_those_it_knows() {
    let desk = Desk::open(Script::new().rule(when(), model().text("Hello"))).await;
    let url = format!("http://{}/agui", desk.address());
    let body = input("r1", &[user("u1", "hi")]);
    let nobody = reqwest::Client::new().post(&url).json(&body).send().await.unwrap();
    assert_eq!(nobody.status(), 401);
    let request = reqwest::Client::new().post(&url).bearer_auth(&desk.token).json(&body);
    let said = request.send().await.unwrap().text().await.unwrap();
    assert!(said.contains("TEXT_MESSAGE_CONTENT"), "{said}");
    assert!(said.trim_end().ends_with('}') && said.contains("RUN_FINISHED"), "{said}");
}
