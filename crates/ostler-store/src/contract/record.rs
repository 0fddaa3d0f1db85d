//! Records: each change raises the version, and a conflicting change is refused.

use serde_json::{Value, json};

use super::Subject;
use crate::{Error, Expected, Filter, Page, Put, Record};

pub async fn each_change_raises_the_version(subject: impl Subject) {
    let store = subject.store();
    let new = store.put(vec![Put::new("task", "t", json!({"n": 1})).owner("ann")]).await;
    let new = new.expect("a new record").remove(0);
    assert_eq!((new.version, new.owner.as_deref()), (1, Some("ann")));
    assert_eq!(subject.other().get("task", "t").await, Ok(Some(new.clone())));
    let changed = Put::update(Record { body: json!({"n": 2}), ..new.clone() });
    let changed = store.put(vec![changed]).await.expect("no other writer changed it").remove(0);
    assert_eq!((changed.version, &changed.body), (2, &json!({"n": 2})));
    assert!(changed.updated >= new.updated);
    assert_eq!(changed.owner.as_deref(), Some("ann"));
    let forced = Put::new("task", "t", json!(null)).expected(Expected::Any);
    assert_eq!(store.put(vec![forced]).await.expect("whatever is there")[0].version, 3);
    let fresh = Put::new("task", "u", json!(null)).expected(Expected::Any);
    assert_eq!(store.put(vec![fresh]).await.expect("nothing is there")[0].version, 1);
    assert_eq!(store.get("task", "v").await, Ok(None));
    assert_eq!(store.get("other", "t").await, Ok(None));
    assert_eq!(store.put(vec![]).await, Ok(vec![]));
}

pub async fn a_conflict_changes_nothing(subject: impl Subject) {
    let store = subject.store();
    let there = Put::new("task", "b", json!("old"));
    store.put(vec![there]).await.expect("a new record");
    let found = |found| Error::Conflict { kind: "task".into(), id: "b".into(), found };
    for expected in [Expected::Absent, Expected::Version(0), Expected::Version(2)] {
        let puts = ["a", "b", "c"].map(|id| {
            let put = Put::new("task", id, json!("new"));
            if id == "b" { put.expected(expected) } else { put }
        });
        assert_eq!(store.put(puts.into()).await, Err(found(Some(1))), "{expected:?}");
    }
    let all = store.list("task", &Filter::default(), &Page::default()).await.expect("listing");
    assert_eq!(all.len(), 1);
    assert_eq!((&all[0].body, all[0].version), (&json!("old"), 1));
    let missing = Put::new("task", "z", json!(1)).expected(Expected::Version(1));
    let missing = store.put(vec![missing]).await;
    let conflict = Error::Conflict { kind: "task".into(), id: "z".into(), found: None };
    assert_eq!(missing, Err(conflict));
}

// Seen to fail when `check` takes any version.
pub async fn one_of_many_writers_wins(subject: impl Subject) {
    let stores = [subject.store(), subject.other()];
    stores[0].put(vec![Put::new("approval", "x", json!(null))]).await.expect("a new record");
    let writers = (0..20).map(|n: usize| {
        let store = stores[n % 2].clone();
        tokio::spawn(async move {
            let put = Put::new("approval", "x", json!(n)).expected(Expected::Version(1));
            store.put(vec![put]).await.map(|_| n)
        })
    });
    let mut winners = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        match writer.await.expect("no panic") {
            Ok(winner) => winners.push(winner),
            Err(Error::Conflict { found, .. }) => assert_eq!(found, Some(2)),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    let record = stores[0].get("approval", "x").await.expect("reading").expect("it is there");
    assert_eq!(record.body, json!(winners[0]));
}

// Seen to fail when a new record always begins with version 1.
pub async fn the_version_of_a_removed_record_is_never_reused(subject: impl Subject) {
    let store = subject.store();
    let mut last = 0;
    for _ in 0..3 {
        let new = store.put(vec![Put::new("rule", "r", json!(1))]).await.expect("it is not there");
        assert!(new[0].version > last, "{} after {last}", new[0].version);
        let changed = store.put(vec![Put::update(new[0].clone())]).await.expect("changing");
        last = changed[0].version;
        store.remove("rule", "r", Expected::Version(last)).await.expect("removing");
        let late = store.put(vec![Put::update(changed[0].clone())]).await;
        assert!(matches!(late, Err(Error::Conflict { found: None, .. })), "{late:?}");
    }
}

pub async fn removing_a_record_checks_its_version(subject: impl Subject) {
    let store = subject.store();
    store.put(vec![Put::new("rule", "r", json!(1))]).await.expect("a new record");
    for expected in [Expected::Absent, Expected::Version(2)] {
        let refused = store.remove("rule", "r", expected).await;
        assert!(matches!(refused, Err(Error::Conflict { found: Some(1), .. })), "{refused:?}");
    }
    store.remove("rule", "r", Expected::Any).await.expect("removing");
    assert_eq!(store.get("rule", "r").await, Ok(None));
    store.remove("rule", "r", Expected::Any).await.expect("it need not be there");
    let gone = store.remove("rule", "r", Expected::Version(1)).await;
    assert!(matches!(gone, Err(Error::Conflict { found: None, .. })), "{gone:?}");
}

pub async fn lists_are_filtered_and_paged(subject: impl Subject) {
    let store = subject.store();
    let records: [(&str, Option<&str>, Value); 8] = [
        ("a1", Some("ann"), json!({"state": "open", "tool": "Bash"})),
        ("a2", Some("ben"), json!({"state": "done"})),
        ("a3", Some("ann"), json!({"state": "done", "tool": "Bash"})),
        ("a%", None, json!({"state": 5})),
        ("b1", Some("ann"), json!({"state": "5", "tool": {"state": "open"}})),
        ("b2", None, json!(["open"])),
        ("b3", None, json!("open")),
        ("ä", Some("ann"), json!({"state": "open"})),
    ];
    for (id, owner, body) in records {
        let put = Put { owner: owner.map(str::to_owned), ..Put::new("task", id, body) };
        store.put(vec![put]).await.expect("a new record");
    }
    store.put(vec![Put::new("other", "a1", json!({"state": "open"}))]).await.expect("another kind");

    let page = |limit| Page { limit, ..Page::default() };
    let ids = async |filter: Filter, page: Page| {
        let found = store.list("task", &filter, &page).await.expect("listing");
        found.into_iter().map(|record| record.id).collect::<Vec<_>>().join(" ")
    };
    let owner = |name: &str| Some(name.to_owned());
    let field = |name: &str, text: &str| Some((name.to_owned(), text.to_owned()));
    let prefix = |text: &str| Some(text.to_owned());

    let count = async |filter: Filter, most| store.count("task", &filter, most).await;
    assert_eq!(count(Filter::default(), 100).await, Ok(8));
    assert_eq!(count(Filter::default(), 3).await, Ok(3));
    let open = Filter { owner: owner("ann"), field: field("state", "open"), ..Filter::default() };
    assert_eq!(count(open, 100).await, Ok(2));
    assert_eq!(ids(Filter::default(), page(100)).await, "a% a1 a2 a3 b1 b2 b3 ä");
    assert_eq!(ids(Filter::default(), page(3)).await, "a% a1 a2");
    let after = Page { after: Some("a2".to_owned()), ..page(3) };
    assert_eq!(ids(Filter::default(), after).await, "a3 b1 b2");
    let missing = Page { after: Some("a25".to_owned()), ..page(1) };
    assert_eq!(ids(Filter::default(), missing).await, "a3");
    let back = Page { after: Some("b2".to_owned()), descending: true, ..page(3) };
    assert_eq!(ids(Filter::default(), back).await, "b1 a3 a2");
    let cases = [
        (Filter { owner: owner("ann"), ..Filter::default() }, "a1 a3 b1 ä"),
        (Filter { owner: owner("zoe"), ..Filter::default() }, ""),
        (Filter { prefix: prefix("a"), ..Filter::default() }, "a% a1 a2 a3"),
        (Filter { prefix: prefix("a%"), ..Filter::default() }, "a%"),
        (Filter { prefix: prefix("b3x"), ..Filter::default() }, ""),
        (Filter { field: field("state", "open"), ..Filter::default() }, "a1 ä"),
        (Filter { field: field("state", "5"), ..Filter::default() }, "b1"),
        (Filter { field: field("tool", "Bash"), ..Filter::default() }, "a1 a3"),
        (
            Filter {
                owner: owner("ann"),
                prefix: prefix("a"),
                field: field("state", "done"),
                ..Filter::default()
            },
            "a3",
        ),
        (Filter { contains: field("tool", "as"), ..Filter::default() }, "a1 a3"),
        (Filter { contains: field("tool", "AS"), ..Filter::default() }, ""),
        (Filter { contains: field("state", "%"), ..Filter::default() }, ""),
        (Filter { owner: owner("ben"), contains: field("state", "on"), ..Filter::default() }, "a2"),
    ];
    for (filter, expected) in cases {
        assert_eq!(ids(filter.clone(), page(100)).await, expected, "{filter:?}");
    }
}

// Seen to fail when `after` is compared with the id.
pub async fn lists_can_be_ordered_by_another_field(subject: impl Subject) {
    let store = subject.store();
    let records = [("a", "ann", "3-a"), ("b", "ben", "2-b"), ("c", "ann", "1-c"), ("d", "ann", "")];
    for (id, owner, place) in records {
        let body = if place.is_empty() { json!({"n": 1}) } else { json!({"place": place}) };
        store.put(vec![Put::new("task", id, body).owner(owner)]).await.expect("a new record");
    }
    let ids = async |owner: Option<&str>, after: Option<&str>, descending| {
        let filter = Filter { owner: owner.map(str::to_owned), ..Filter::default() };
        let by = Some("place".to_owned());
        let page = Page { by, after: after.map(str::to_owned), descending, ..Page::default() };
        let found = store.list("task", &filter, &page).await.expect("listing");
        found.into_iter().map(|record| record.id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids(None, None, true).await, "a b c", "a record without a place is left out");
    assert_eq!(ids(None, None, false).await, "c b a");
    assert_eq!(ids(None, Some("2-b"), true).await, "c");
    assert_eq!(ids(None, Some("2-b"), false).await, "a");
    assert_eq!(ids(Some("ann"), Some("3-a"), true).await, "c");
    let moved = Put::new("task", "c", json!({"place": "4-c"})).owner("ann");
    store.put(vec![moved.expected(Expected::Any)]).await.expect("something happened to it");
    assert_eq!(ids(None, None, true).await, "c a b");
    assert_eq!(
        ids(None, Some("2-b"), true).await,
        "",
        "a record that moved up is not listed again below"
    );
}

// Seen to fail when records that do not fit are counted.
pub async fn records_are_counted_by_a_field(subject: impl Subject) {
    let store = subject.store();
    let records =
        [("a", "ann", "open"), ("b", "ann", "open"), ("c", "ann", "shut"), ("d", "ben", "open")];
    for (id, owner, state) in records {
        let session = if id == "b" { "two" } else { "one" };
        let body = json!({"state": state, "session": session});
        store.put(vec![Put::new("task", id, body).owner(owner)]).await.expect("a new record");
    }
    for odd in [json!({"state": "open"}), json!({"state": "open", "session": 5})] {
        let id = format!("e{}", odd.to_string().len());
        store.put(vec![Put::new("task", id, odd).owner("ann")]).await.expect("a new record");
    }
    let count = async |owner: Option<&str>, most| {
        let field = Some(("state".to_owned(), "open".to_owned()));
        let filter = Filter { owner: owner.map(str::to_owned), field, ..Filter::default() };
        store.count_by("task", &filter, "session", most).await.expect("counting")
    };
    let one = |count| ("one".to_owned(), count);
    assert_eq!(count(None, 10).await, [one(2), ("two".to_owned(), 1)]);
    assert_eq!(count(Some("ann"), 10).await, [one(1), ("two".to_owned(), 1)]);
    assert_eq!(count(Some("missing"), 10).await, []);
    assert_eq!(count(None, 1).await.len(), 1);
    let refused = store.count_by("task", &Filter::default(), "a'b", 1).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

// Mutant: `replace` that removes although a put is refused.
pub async fn records_are_replaced_all_or_none(subject: impl Subject) {
    let store = subject.store();
    for id in ["a", "b"] {
        store.put(vec![Put::new("task", id, json!(1))]).await.expect("a new record");
    }
    let gone = |id: &str| vec![("task".to_owned(), id.to_owned(), Expected::Version(1))];
    let refused = store.replace(vec![Put::new("task", "b", json!(2))], gone("a")).await;
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    assert!(store.get("task", "a").await.expect("reading").is_some(), "nothing was done");
    store.replace(vec![Put::new("task", "c", json!(3))], gone("a")).await.expect("replacing");
    assert!(store.get("task", "a").await.expect("reading").is_none());
    assert!(store.get("task", "c").await.expect("reading").is_some());
    let refused = store.replace(vec![Put::new("task", "d", json!(4))], gone("a")).await;
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    assert!(store.get("task", "d").await.expect("reading").is_none(), "nothing was done");
}

pub async fn invalid_names_are_refused(subject: impl Subject) {
    let store = subject.store();
    let long = "x".repeat(1000);
    for (kind, id) in
        [("", "a"), ("a b", "a"), ("ä", "a"), (&long, "a"), ("a", ""), ("a", "x\n"), ("a", &long)]
    {
        let refused = store.put(vec![Put::new(kind, id, json!(1))]).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{kind:?} {id:?}: {refused:?}");
    }
    for name in ["", ".b", "a.", "a..b", "a.1", "a'b", "a\"b", "1", "$"] {
        let filter = Filter { field: Some((name.to_owned(), String::new())), ..Filter::default() };
        let refused = store.list("a", &filter, &Page::default()).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{name:?}: {refused:?}");
        let page = Page { by: Some(name.to_owned()), ..Page::default() };
        let refused = store.list("a", &Filter::default(), &page).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{name:?}: {refused:?}");
    }
    let put = Put::new("a", "x/y ' ä", json!(1));
    store.put(vec![put]).await.expect("an id may be nearly anything");
    assert!(store.get("a", "x/y ' ä").await.expect("reading").is_some());
}
