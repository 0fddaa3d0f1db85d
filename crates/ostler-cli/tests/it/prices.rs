//! Prices that the user sets for models that are not in the list; dollar limits and costs use them.

use std::fs;

use ostler::engine::Embedded;
use ostler::options::ModelPrice;
use ostler::{Error, ErrorKind, Options, prompt};
use ostler_testkit::{Script, ScriptedApi, Status, Usage, reply, when};
use serde_json::{Value, json};

use crate::run::{Ostler, PROGRAM, Ran};

const PRINT: &[&str] = &["-p", "--output-format", "json"];

/// Every answer uses a million tokens of input and a million of output.
async fn api() -> ScriptedApi {
    let used = || Usage::tokens(1_000_000, 1_000_000);
    let task = json!({"description": "look", "prompt": "sub: look", "subagent_type": "cheap"});
    let script = Script::new()
        .rule(when().model("overloaded"), reply().status(Status::new(529)))
        .rule(when().prompt_contains("sub:"), reply().text("Report.").usage(used()))
        .rule(
            when().prompt_contains("delegate").turn(0),
            reply().tool_use("Agent", task).usage(used()),
        )
        .rule(when(), reply().text("Fine.").usage(used()));
    ScriptedApi::start(script).await
}

fn ostler(api: &ScriptedApi) -> Ostler {
    Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url())
}

fn result(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

// Mutants: `pick::prices` leaves out the command line; `Spent::new` forgets the prices.
#[tokio::test(flavor = "multi_thread")]
async fn a_dollar_limit_works_for_a_model_with_a_given_price() {
    let api = api().await;
    let ostler = ostler(&api);
    let run = |arguments: &[&str]| {
        ostler.run(&[PRINT, &["--model", "mine"], arguments, &["hello"]].concat())
    };
    let refused = run(&["--max-budget-usd", "1"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("--model-price mine=IN/OUT"), "{refused:?}");
    assert_eq!(api.requests().len(), 0);
    let price = "--model-price=mine=3/15";
    let within = result(&run(&["--max-budget-usd", "20", price]));
    assert_eq!((&within["subtype"], &within["total_cost_usd"]), (&json!("success"), &json!(18)));
    assert_eq!(within["modelUsage"]["mine"]["costBasis"], "managed");
    let beyond = result(&run(&["--max-budget-usd", "17", price]));
    assert_eq!(beyond["subtype"], "error_max_budget_usd");
    assert_eq!(beyond["errors"], json!(["Reached maximum budget ($17)"]));
    // Without a limit the price still gives the cost.
    assert_eq!(result(&run(&[price]))["total_cost_usd"], 18);
    let odd = run(&["--model-price", "mine=cheap"]);
    assert!(odd.code == Some(2) && odd.stderr.contains("MODEL=IN/OUT"), "{odd:?}");
}

// Mutants: `load` takes prices of projects; `load` takes negative prices.
#[tokio::test(flavor = "multi_thread")]
async fn prices_are_read_from_settings_of_the_user_and_not_of_the_project() {
    let api = api().await;
    let ostler = ostler(&api);
    let prices = r#"{"modelPrices": {"mi*": {"input": 3, "output": 15}}}"#;
    let run = |arguments: &[&str]| {
        let limit = ["--model", "mine", "--max-budget-usd", "20"];
        ostler.run(&[PRINT, &limit, arguments, &["hello"]].concat())
    };
    fs::create_dir_all(ostler.path(".claude")).unwrap();
    fs::write(ostler.path(".claude/settings.json"), prices).unwrap();
    let of_project = run(&["--trust-project"]);
    assert!(of_project.code == Some(1) && of_project.stderr.contains("price"), "{of_project:?}");
    assert_eq!(result(&run(&["--settings", prices]))["total_cost_usd"], 18);
    let negative = r#"{"modelPrices": {"mine": {"input": -3, "output": 15}}}"#;
    let refused = run(&["--settings", negative]);
    assert!(refused.code == Some(1) && refused.stderr.contains("is not a price"), "{refused:?}");
    let text = run(&["--settings", r#"{"modelPrices": {"mine": "3/15"}}"#]);
    assert!(text.code == Some(1) && text.stderr.contains("modelPrices"), "{text:?}");
    fs::create_dir_all(ostler.path("no-home/.claude")).unwrap();
    fs::write(ostler.path("no-home/.claude/settings.json"), prices).unwrap();
    assert_eq!(result(&run(&[]))["total_cost_usd"], 18);
}

#[tokio::test(flavor = "multi_thread")]
async fn models_of_subagents_and_the_fallback_model_need_prices_too() {
    let api = api().await;
    let ostler = ostler(&api);
    let agents = r#"{"cheap": {"description": "d", "prompt": "p", "model": "small"}}"#;
    let prices = ["--model-price", "mine=3/15", "--model-price", "small=1/2"];
    let limit = ["--max-budget-usd", "100", "--model", "mine", "--agents", agents];
    let ran = ostler.run(&[PRINT, &limit, &prices, &["delegate"]].concat());
    let used = result(&ran);
    let cost = |model: &str| used["modelUsage"][model]["costUSD"].as_f64().unwrap_or_default();
    assert_eq!((cost("small"), cost("mine") >= 18.0), (3.0, true), "{ran:?}");
    assert_eq!(used["total_cost_usd"], cost("mine") + 3.0, "{ran:?}");
    let limit = ["--max-budget-usd", "100", "--model", "overloaded", "--fallback-model", "small"];
    let price = ["--model-price", "overloaded=5/5"];
    let refused = ostler.run(&[PRINT, &limit, &price, &["hello"]].concat());
    assert!(refused.stderr.contains("--model-price small=IN/OUT"), "{refused:?}");
    let ran =
        ostler.run(&[PRINT, &limit, &price, &["--model-price", "small=1/2", "hello"]].concat());
    assert_eq!(result(&ran)["total_cost_usd"], 3, "{ran:?}");
}

// Mutants: `Launch::to_args` leaves out the prices; `Options::launch` does.
#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_passes_prices_to_both_of_our_engines() {
    let api = api().await;
    for base in [Options::new().transport(Embedded), Options::new().executable(PROGRAM)] {
        let home = tempfile::tempdir().unwrap();
        let options = base
            .model("mine")
            .max_budget_usd(17.0)
            .cwd(home.path())
            .env("ANTHROPIC_BASE_URL", api.base_url())
            .env("ANTHROPIC_API_KEY", "any")
            .env("HOME", home.path().display().to_string());
        let error = prompt("hello", options.clone()).await.unwrap_err().to_string();
        assert!(error.contains("price of the model mine is unknown"), "{error}");
        let priced = options.clone().model_price("mine", ModelPrice::new(3.0, 15.0));
        let error = prompt("hello", priced).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Budget, "{error:?}");
        let cheap = ModelPrice { cache_read: Some(0.1), ..ModelPrice::new(1.0, 2.0) };
        let result = prompt("hello", options.clone().model_price("mi*", cheap)).await.unwrap();
        assert_eq!(result.total_cost_usd.get(), 3.0);
        let odd = options.model_price("mine", ModelPrice::new(f64::NAN, 1.0));
        let error = prompt("hello", odd).await.unwrap_err();
        assert!(matches!(&error, Error::Options(text) if text.contains("not a price")), "{error}");
    }
}
