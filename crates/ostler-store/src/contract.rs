//! What every [`Store`] promises, as tests. A new one passes them all before it is used:
//!
//! ```text
//! ostler_store::contract_tests!(my_subject());
//! ```
//!
//! They are part of the crate so that stores outside of it can be held to them, and panic where a promise is broken.
#![allow(missing_docs, reason = "the names of the checks say what they check")]

pub mod due;
pub mod forget;
pub mod lease;
pub mod log;
pub mod record;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::{Body, Event, Lease, NewEvent, Store, StreamId};

/// An empty store to be examined.
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    fn store(&self) -> Arc<dyn Store>;

    /// Another server on the same store, where there can be one; else the same again.
    fn other(&self) -> Arc<dyn Store>;

    /// Lets this much time pass for the store.
    async fn pass(&self, time: Duration);
}

/// How long a lease lasts here.
const LEASE: Duration = Duration::from_secs(10);

fn stream(name: &str) -> StreamId {
    StreamId::new(name).expect("the names here are plain")
}

fn said(text: impl Into<Value>) -> NewEvent {
    NewEvent::new("said", json!({ "text": text.into() }))
}

fn text(event: &Event) -> String {
    let body: Value = event.body.to().expect("a body is JSON");
    body["text"].as_str().map_or_else(|| body["text"].to_string(), str::to_owned)
}

fn body(value: Value) -> Body {
    Body::from(value)
}

async fn claim(store: &Arc<dyn Store>, name: &str) -> Lease {
    store.claim(&stream(name), "me", LEASE).await.expect("nobody else holds it")
}

/// Everything in a stream, in pages of this size.
async fn read_all(store: &Arc<dyn Store>, name: &str, page: usize) -> Vec<Event> {
    let (stream, mut events) = (stream(name), Vec::<Event>::new());
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let more = store.read_from(&stream, after, page).await.expect("reading");
        assert!(more.len() <= page, "{} events instead of at most {page}", more.len());
        if more.is_empty() {
            return events;
        }
        events.extend(more);
    }
}

/// One test per promise; the expression makes a [`Subject`] and is awaited.
#[macro_export]
#[doc(hidden)]
macro_rules! contract_tests {
    ($subject:expr) => {
        $crate::contract_tests! { $subject;
            lease { one_at_a_time, an_old_epoch_cannot_append, a_released_lease_is_worth_nothing,
                a_lease_that_ran_out_can_be_renewed_until_somebody_claims,
                renewing_keeps_others_out, an_owner_can_claim_again, claims_race_for_one_winner }
            log { events_are_numbered_from_one, an_append_is_all_or_nothing,
                a_known_key_returns_the_event_that_is_there, a_repeated_append_changes_no_record,
                new_and_known_keys_may_mix, some_keys_and_some_without_is_refused,
                fifty_appenders_leave_no_gap, fleeting_events_keep_their_place,
                pages_add_up, nothing_is_behind_the_end, whoever_follows_is_told,
                what_is_announced_can_be_read, bodies_come_back_as_written,
                what_is_too_large_is_refused, streams_are_apart }
            record { versions_count_up, a_conflict_changes_nothing, one_of_many_writers_wins,
                a_removed_version_never_comes_back, removing_minds_the_version,
                lists_are_filtered_and_paged, records_are_counted_by_a_field, records_are_replaced_together, lists_go_by_another_field_if_asked_to,
                names_are_checked }
            forget { drafts_are_read_until_the_whole_is_there, a_draft_has_no_key,
                a_forgotten_stream_is_gone_and_so_are_its_leases,
                the_rest_of_a_trimmed_stream_can_be_verified,
                a_list_has_those_with_any_of_some_values }
            due { what_is_due_is_claimed_once, the_earliest_comes_first,
                an_abandoned_claim_goes_to_another, a_completed_one_is_gone_or_due_again,
                rescheduling_voids_a_claim, an_id_used_again_does_not_revive_a_claim }
        }
    };
    ($subject:expr; $($module:ident { $($check:ident),+ })+) => {
        $(mod $module {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                $crate::contract::$module::$check($subject.await).await;
            })+
        })+
    };
}
