//! The choice of the model, from options, settings and variables.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use ostler_engine::model::{ChatMessage, Credential, Request};
use ostler_engine::settings::{Folders, Sources, load};
use ostler_proto::api::{ContentBlock, Role};
use ostler_proto::launch::Launch;
use ostler_sdk::transport::Environment;
use serde_json::{Value, json};

use super::*;

fn picked(wanted: Option<&str>, variables: &[(&str, &str)]) -> Result<String, String> {
    with_settings(json!({}), wanted, variables)
}

fn with_settings(
    settings: Value,
    wanted: Option<&str>,
    variables: &[(&str, &str)],
) -> Result<String, String> {
    let (context, settings) = started(settings, variables, |launch| {
        launch.model.name = wanted.map(str::to_owned);
    });
    model(&context, &settings)
        .map(|picked| picked.model.name().to_owned())
        .map_err(|error| error.to_string())
}

fn started(
    settings: Value,
    variables: &[(&str, &str)],
    change: impl FnOnce(&mut Launch),
) -> (StartContext, Settings) {
    let flag = Some(settings.to_string());
    let sources = Sources { flag, ..Sources::default() };
    let settings = load(&Folders::default(), &sources).unwrap();
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut launch = Launch::default();
    change(&mut launch);
    let mut context = StartContext::new(launch, "/");
    context.env = Environment { replaces: true, variables };
    (context, settings)
}

const KEY_SET: (&str, &str) = ("ANTHROPIC_API_KEY", "k");

#[test]
fn a_key_selects_the_api() {
    assert_eq!(picked(None, &[("ANTHROPIC_API_KEY", "k")]).unwrap(), DEFAULT_MODEL);
    assert_eq!(picked(Some("x"), &[("ANTHROPIC_AUTH_TOKEN", "t")]).unwrap(), "x");
}

/// The name of the model, and why it does not answer.
async fn asked(change: impl FnOnce(&mut StartContext)) -> (String, Option<ModelError>) {
    let (mut context, settings) = started(json!({}), &[], |_| {});
    change(&mut context);
    let model = model(&context, &settings).unwrap().model;
    let prompt = ChatMessage { role: Role::User, content: vec![ContentBlock::text("hello")] };
    let answer = model.respond(Request::new(model.name(), vec![prompt])).next().await;
    (model.name().to_owned(), answer.unwrap().err())
}

// Mutants: the demo answers whenever there is no key; a named model is not looked at; the variable of the settings counts.
#[tokio::test]
async fn without_a_key_prompts_fail_unless_the_demo_was_chosen_or_a_terminal_shows_its_banner() {
    let fails = Some(ModelError::NotLoggedIn);
    let no_key = ("ANTHROPIC_API_KEY".to_owned(), " ".to_owned());
    assert_eq!(asked(|_| {}).await, (DEFAULT_MODEL.to_owned(), fails.clone()));
    let blank = |context: &mut StartContext| context.env.variables.extend([no_key]);
    assert_eq!(asked(blank).await, (DEFAULT_MODEL.to_owned(), fails.clone()));
    let named = |context: &mut StartContext| context.launch.model.name = Some("opus".to_owned());
    assert_eq!(asked(named).await, (DEFAULT_MODEL.to_owned(), fails.clone()));
    let demo = (OFFLINE.to_owned(), None);
    let chosen = |context: &mut StartContext| context.launch.model.name = Some(OFFLINE.to_owned());
    assert_eq!(asked(chosen).await, demo);
    let chosen = |context: &mut StartContext| {
        context.launch.model.name = Some("opus".to_owned());
        context.env.variables.insert("OSTLER_OFFLINE".to_owned(), "1".to_owned());
    };
    assert_eq!(asked(chosen).await, demo, "the user asked that nothing is sent");
    assert_eq!(asked(|context| context.offers_demo = true).await, demo);

    let project = json!({"env": {"OSTLER_OFFLINE": "1"}});
    assert_eq!(with_settings(project, None, &[]).unwrap(), DEFAULT_MODEL);
    let (mut context, settings) = started(json!({}), &[], |_| {});
    (context.is_interactive, context.offers_demo) = (true, false);
    let error = model(&context, &settings).err().unwrap().to_string();
    assert!(error.starts_with("Not logged in") && error.contains("ANTHROPIC_API_KEY"), "{error}");
    (context.launch.model.name, context.offers_demo) = (Some("x".to_owned()), true);
    assert!(model(&context, &settings).is_err(), "the demo does not answer as another model");
}

// Mutant: the settings come first.
#[test]
fn settings_name_the_model_and_the_key_unless_the_command_line_does() {
    let key = ("ANTHROPIC_API_KEY", "k");
    let named = || json!({"model": "mine"});
    assert_eq!(with_settings(named(), None, &[key]).unwrap(), "mine");
    assert_eq!(with_settings(named(), Some("x"), &[key]).unwrap(), "x");
    let env = json!({"env": {"ANTHROPIC_API_KEY": "k"}});
    assert_eq!(with_settings(env, None, &[]).unwrap(), DEFAULT_MODEL);
    let helper = |command: &str| json!({"apiKeyHelper": command});
    assert_eq!(with_settings(helper("echo k"), None, &[]).unwrap(), DEFAULT_MODEL);
    assert_eq!(with_settings(helper("exit 1"), None, &[key]).unwrap(), DEFAULT_MODEL);
    let error = with_settings(helper("echo secret; exit 3"), None, &[]).unwrap_err();
    assert!(error.contains("apiKeyHelper") && !error.contains("secret"), "{error}");
    assert!(with_settings(helper("true"), None, &[]).unwrap_err().contains("no key"));
}

// Mutant: the default model counts as chosen, so that a short name of its family means it.
#[test]
fn a_short_name_means_the_model_that_the_environment_or_the_settings_name_for_it() {
    let key = ("ANTHROPIC_API_KEY", "k");
    let big = ("ANTHROPIC_DEFAULT_OPUS_MODEL", "big");
    assert_eq!(picked(Some("opus"), &[key, big]).unwrap(), "big");
    assert_eq!(picked(Some("opus[1m]"), &[key, big]).unwrap(), "big[1m]");
    assert_eq!(picked(Some("default"), &[key, big]).unwrap(), "big");
    assert_eq!(
        picked(None, &[key, ("ANTHROPIC_DEFAULT_MODEL", "sonnet")]).unwrap(),
        "claude-sonnet-5-5"
    );
    let settings =
        |model: Value| json!({"model": model, "env": {"ANTHROPIC_DEFAULT_OPUS_MODEL": "large"}});
    assert_eq!(with_settings(settings(json!("opus")), None, &[key]).unwrap(), "large");
    assert_eq!(with_settings(settings(json!("x")), Some("opus"), &[key]).unwrap(), "large");
}

#[test]
fn a_key_that_is_not_a_valid_header_is_refused_and_the_error_does_not_contain_it() {
    let error = picked(None, &[("ANTHROPIC_API_KEY", "se\ncret")]).unwrap_err();
    assert!(!error.contains("cret"), "{error}");
}

// Mutant: an empty name of the launch counts as one.
#[test]
fn an_empty_name_counts_as_none() {
    assert_eq!(picked(Some(""), &[KEY_SET]).unwrap(), DEFAULT_MODEL);
    assert_eq!(with_settings(json!({"model": ""}), None, &[KEY_SET]).unwrap(), DEFAULT_MODEL);
}

// Mutants: `variable` that prefers the process; that ignores the settings; a token is reported as a key; the settings, or the
// helper, are not named as the source.
#[test]
fn the_environment_of_the_settings_comes_before_that_of_the_process() {
    let env = |name: &str, value: &str| json!({"env": {name: value}});
    let of_process = [KEY_SET, ("ANTHROPIC_DEFAULT_OPUS_MODEL", "large")];
    let settings = env("ANTHROPIC_DEFAULT_OPUS_MODEL", "big");
    assert_eq!(with_settings(settings, Some("opus"), &of_process).unwrap(), "big");

    let access = |settings: Value, variables: &[(&str, &str)]| {
        let (context, settings) = started(settings, variables, |_| {});
        let access = reach(&context, &settings).unwrap().unwrap();
        let keys = access.config.credential.secrets().join(" ");
        (keys, access.key, access.source.account())
    };
    let (keys, from, account) = access(env("ANTHROPIC_API_KEY", "s"), &[KEY_SET]);
    assert_eq!((&*keys, &*from), ("s", "ANTHROPIC_API_KEY is set in the settings"));
    assert_eq!(account.api_key_source.as_deref(), Some("ANTHROPIC_API_KEY"));
    assert_eq!(account.token_source.as_deref(), Some("none"));
    let (keys, from, account) = access(json!({}), &[("ANTHROPIC_AUTH_TOKEN", "t")]);
    assert_eq!((&*keys, &*from), ("t", "ANTHROPIC_AUTH_TOKEN is set"));
    assert_eq!(account.token_source.as_deref(), Some("ANTHROPIC_AUTH_TOKEN"));
    assert_eq!(account.api_key_source.as_deref(), Some("none"));
    let (keys, from, account) = access(json!({"apiKeyHelper": "echo h"}), &[]);
    // The API takes it as a key or as a token.
    assert_eq!((&*keys, &*from), ("h h", "apiKeyHelper of the settings gives one"));
    assert_eq!(account.api_key_source.as_deref(), Some("apiKeyHelper"));
}

// Mutants: a list is one name; a short name stays as it is written; an empty one counts; betas of the launch, or the one for task budgets, are left out.
#[test]
fn the_fallback_model_has_its_full_name_and_betas_are_added() {
    let config = |change: &dyn Fn(&mut Launch), variables: &[(&str, &str)]| {
        let (context, settings) = started(json!({}), variables, change);
        let mut config = ApiConfig::new("http://localhost", Credential::Key("k".into()), "x");
        config.betas = vec!["first".to_owned()];
        with_options(&context, &settings, config)
    };
    let fallback = |name: &str, variables: &[(&str, &str)]| {
        let set = |launch: &mut Launch| launch.model.fallback = Some(name.to_owned());
        config(&set, variables).fallback_models.join(" ")
    };
    assert!(config(&|_| {}, &[]).fallback_models.is_empty());
    assert_eq!(fallback("", &[]), "");
    assert_eq!(fallback("haiku, mine,haiku,", &[]), format!("{SMALL_MODEL} mine"));
    assert_eq!(fallback("haiku", &[]), SMALL_MODEL);
    assert_eq!(fallback("default", &[]), DEFAULT_MODEL);
    assert_eq!(fallback("mine", &[]), "mine");
    let big = [("ANTHROPIC_DEFAULT_OPUS_MODEL", "big")];
    assert_eq!(fallback("opus", &big), "big");

    assert_eq!(config(&|_| {}, &[]).betas, ["first"]);
    let both = |launch: &mut Launch| {
        launch.model.betas = vec!["second".to_owned()];
        launch.limits.task_budget = Some(1000);
    };
    assert_eq!(config(&both, &[]).betas, ["first", "second", TASK_BUDGETS]);
}

// Mutants: the older variable comes first; an empty variable counts; the family of the model is not looked at.
#[test]
fn the_small_model_is_the_named_one_or_that_of_a_known_family() {
    let small = |settings: Value, variables: &[(&str, &str)], model: &str| {
        let (context, settings) = started(settings, variables, |_| {});
        small_model(&context, &settings, model)
    };
    let (new, old) = ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL");
    let env = |name: &str, value: &str| json!({"env": {name: value}});
    for (settings, variables, model, expected) in [
        (json!({}), &[][..], DEFAULT_MODEL, Some(SMALL_MODEL)),
        (json!({}), &[], "opusplan", Some(SMALL_MODEL)),
        (json!({}), &[], "my-proxy-model", None),
        (json!({}), &[(old, "tiny")], "my-proxy-model", Some("tiny")),
        (json!({}), &[(old, "tiny"), (new, "little")], DEFAULT_MODEL, Some("little")),
        (json!({}), &[(old, ""), (new, "")], DEFAULT_MODEL, Some(SMALL_MODEL)),
        (env(new, ""), &[(old, "tiny")], DEFAULT_MODEL, Some("tiny")),
        (env(old, "least"), &[(old, "tiny")], DEFAULT_MODEL, Some("least")),
        // Opus is of an unknown family here, and plans with this name.
        (json!({}), &[("ANTHROPIC_DEFAULT_OPUS_MODEL", "big")], "opusplan", None),
    ] {
        let found = small(settings.clone(), variables, model);
        assert_eq!(found.as_deref(), expected, "{settings} {variables:?} {model}");
    }
}

// Mutants: the fallback model is not looked at; prices of the launch, or of the settings, are not used; asked without a limit too.
#[test]
fn a_limit_in_dollars_requires_the_prices_of_all_models() {
    let refused = |settings: Value, model: &str, change: &dyn Fn(&mut Launch)| {
        let (context, settings) = started(settings, &[], |launch| {
            launch.limits.max_budget_usd = Some(1.0);
            change(launch);
        });
        let prices = prices(&context, &settings);
        unpriced(&context, &settings, &prices, model).map(|error| error.to_string())
    };
    let price = || json!({"modelPrices": {"mine": {"input": 3, "output": 15}}});
    let fallback = |launch: &mut Launch| launch.model.fallback = Some("mine".to_owned());
    assert_eq!(refused(json!({}), DEFAULT_MODEL, &|_| {}), None);
    assert_eq!(refused(json!({}), "opusplan", &|_| {}), None);
    assert!(refused(json!({}), "mine", &|_| {}).unwrap().contains("mine"));
    assert!(refused(json!({}), DEFAULT_MODEL, &fallback).unwrap().contains("mine"));
    assert_eq!(refused(price(), "mine", &|_| {}), None);
    assert_eq!(refused(price(), DEFAULT_MODEL, &fallback), None);
    let given = |launch: &mut Launch| launch.set("model-price", &["mine=3/15"]).unwrap();
    assert_eq!(refused(json!({}), "mine", &given), None);
    let free = |launch: &mut Launch| launch.limits.max_budget_usd = None;
    assert_eq!(refused(json!({}), "mine", &free), None);
}
