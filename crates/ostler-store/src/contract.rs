//! The contract of [`Store`], as tests. A new implementation must pass them all:
//!
//! ```text
//! ostler_store::contract_tests!(my_subject());
//! ```
//!
//! They are part of the crate so that stores in other crates can run them. They panic when the contract is broken.
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

/// An empty store under test.
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    fn store(&self) -> Arc<dyn Store>;

    /// A second server on the same store, if the store allows several; otherwise the same store.
    fn other(&self) -> Arc<dyn Store>;

    /// Advances the store's clock.
    async fn pass(&self, time: Duration);
}

/// How long a lease lasts here.
const LEASE: Duration = Duration::from_secs(10);

fn stream(name: &str) -> StreamId {
    StreamId::new(name).expect("the names here are plain")
}

fn message(text: impl Into<Value>) -> NewEvent {
    NewEvent::new("message", json!({ "text": text.into() }))
}

fn text(event: &Event) -> String {
    let body: Value = event.body.to().expect("a body is JSON");
    body["text"].as_str().map_or_else(|| body["text"].to_string(), str::to_owned)
}

fn body(value: Value) -> Body {
    Body::from(value)
}

async fn claim(store: &Arc<dyn Store>, name: &str) -> Lease {
    store.claim(&stream(name), "me", LEASE).await.expect("no other owner holds it")
}

/// Reads a whole stream, `page` events at a time.
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

/// Generates one test per rule of the contract. The expression makes a [`Subject`] and is awaited.
#[macro_export]
#[doc(hidden)]
macro_rules! contract_tests {
    ($subject:expr) => {
        $crate::contract_tests! { $subject;
            lease { only_one_owner_holds_a_stream, an_old_epoch_cannot_append, a_released_lease_cannot_append,
                an_expired_lease_can_be_renewed_until_another_owner_claims_it,
                renewing_a_lease_blocks_other_owners, an_owner_can_claim_its_own_stream_again, one_of_many_concurrent_claims_wins }
            log { events_are_numbered_from_one, an_append_is_all_or_nothing,
                a_known_key_returns_the_stored_event, a_repeated_append_changes_no_record,
                new_and_known_keys_may_mix, an_append_where_only_some_events_have_keys_is_refused,
                fifty_concurrent_appenders_leave_no_gap, fleeting_events_keep_their_order,
                all_pages_together_are_the_whole_stream, reading_past_the_end_returns_nothing, followers_are_notified_of_new_events,
                an_announced_event_can_be_read, bodies_are_read_back_as_written,
                an_event_that_is_too_large_is_refused, streams_are_independent }
            record { each_change_raises_the_version, a_conflict_changes_nothing, one_of_many_writers_wins,
                the_version_of_a_removed_record_is_never_reused, removing_a_record_checks_its_version,
                lists_are_filtered_and_paged, records_are_counted_by_a_field, records_are_replaced_all_or_none, lists_can_be_ordered_by_another_field,
                invalid_names_are_refused }
            forget { drafts_are_readable_until_the_complete_event_arrives, a_draft_has_no_key,
                a_deleted_stream_loses_its_events_and_leases,
                the_rest_of_a_trimmed_stream_can_be_verified,
                a_list_can_be_filtered_by_several_values }
            due { a_due_timer_is_claimed_once, the_earliest_timer_is_claimed_first,
                an_expired_claim_can_be_taken_over, a_completed_timer_is_removed_or_rescheduled,
                rescheduling_a_timer_invalidates_its_claim, reusing_a_timer_id_does_not_revive_an_old_claim }
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
