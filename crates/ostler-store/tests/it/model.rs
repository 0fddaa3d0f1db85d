//! Random requests, compared with a model of a store: a few maps and no disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ostler_store::{
    Due, DueClaim, Error, Event, Expected, Filter, Lease, NewEvent, Page, Put, Sqlite, Store,
    StreamId, Timestamp,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::clock::TestClock;

const HISTORIES: u64 = 12;
const REQUESTS: usize = 150;
const LEASE: Duration = Duration::from_secs(10);

/// SQLite's error code for a full disk.
const FULL: i32 = 13;

/// A deterministic random number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn one_of<T: Clone>(&mut self, things: &[T]) -> T {
        things[self.below(things.len())].clone()
    }
}

#[derive(Clone, Default)]
struct Model {
    streams: BTreeMap<String, Stream>,
    records: BTreeMap<String, (u64, Value)>,
    removed: u64,
    dues: BTreeMap<String, (Timestamp, Option<(u64, Timestamp)>)>,
    claims: u64,
}

#[derive(Clone, Default)]
struct Stream {
    epoch: u64,
    holder: Option<(String, Timestamp)>,
    /// Value and key.
    events: Vec<(u64, Option<String>)>,
}

/// The parts of an error that are compared.
#[derive(Debug, PartialEq)]
enum Refusal {
    Held,
    Fenced,
    Conflict(Option<u64>),
    Full,
    Other(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Held { .. } => Self::Held,
            Error::Fenced { .. } => Self::Fenced,
            Error::Conflict { found, .. } => Self::Conflict(found),
            Error::Full { .. } => Self::Full,
            other => Self::Other(other),
        }
    }
}

impl Model {
    fn claim(&mut self, name: &str, owner: &str, now: Timestamp) -> Result<u64, Refusal> {
        let stream = self.streams.entry(name.to_owned()).or_default();
        if let Some((holder, until)) = &stream.holder
            && holder != owner
            && *until > now
        {
            return Err(Refusal::Held);
        }
        stream.epoch += 1;
        stream.holder = Some((owner.to_owned(), now.after(LEASE)));
        Ok(stream.epoch)
    }

    fn held(&mut self, lease: &Lease) -> Result<&mut Stream, Refusal> {
        let stream = self.streams.get_mut(lease.stream.as_str()).ok_or(Refusal::Fenced)?;
        let owner = stream.holder.as_ref().map(|(owner, _)| owner);
        let valid = stream.epoch == lease.epoch && owner == Some(&lease.owner);
        if valid { Ok(stream) } else { Err(Refusal::Fenced) }
    }

    /// The numbers of the events, or the refusal, which changes nothing.
    fn append(
        &mut self,
        lease: &Lease,
        events: &[(u64, Option<String>)],
        puts: &[Put],
    ) -> Result<Vec<u64>, Refusal> {
        let before = self.clone();
        let stream = self.held(lease)?;
        let known = |stream: &Stream, key: &Option<String>| {
            let place = stream.events.iter().position(|(_, there)| key.is_some() && there == key);
            place.map(|place| place as u64 + 1)
        };
        let repeated: Option<Vec<u64>> = events.iter().map(|(_, key)| known(stream, key)).collect();
        if let Some(numbers) = repeated.filter(|numbers| !numbers.is_empty()) {
            return Ok(numbers);
        }
        let mut numbers = Vec::new();
        for (said, key) in events {
            let number = known(stream, key).unwrap_or_else(|| {
                stream.events.push((*said, key.clone()));
                stream.events.len() as u64
            });
            numbers.push(number);
        }
        if let Err(refusal) = self.put(puts) {
            *self = before;
            return Err(refusal);
        }
        Ok(numbers)
    }

    fn put(&mut self, puts: &[Put]) -> Result<Vec<u64>, Refusal> {
        let before = self.clone();
        let mut versions = Vec::new();
        for put in puts {
            let found = match self.expected(&put.id, put.expected) {
                Ok(found) => found,
                Err(refusal) => {
                    *self = before;
                    return Err(refusal);
                }
            };
            let version = found.unwrap_or(self.removed) + 1;
            self.records.insert(put.id.clone(), (version, put.body.clone()));
            versions.push(version);
        }
        Ok(versions)
    }

    fn expected(&self, id: &str, expected: Expected) -> Result<Option<u64>, Refusal> {
        let found = self.records.get(id).map(|(version, _)| *version);
        let fits = match expected {
            Expected::Any => true,
            Expected::Absent => found.is_none(),
            Expected::Version(version) => found == Some(version),
        };
        if fits { Ok(found) } else { Err(Refusal::Conflict(found)) }
    }

    fn remove(&mut self, id: &str, expected: Expected) -> Result<(), Refusal> {
        if let Some(version) = self.expected(id, expected)? {
            self.removed = self.removed.max(version);
            self.records.remove(id);
        }
        Ok(())
    }

    /// Ids and epochs of the claimed timers.
    fn claim_due(
        &mut self,
        wall: Timestamp,
        steady: Timestamp,
        limit: usize,
    ) -> Vec<(String, u64)> {
        let free =
            |claim: &Option<(u64, Timestamp)>| claim.is_none_or(|(_, until)| until <= steady);
        let waiting = self.dues.iter().filter(|(_, (at, claim))| *at <= wall && free(claim));
        let mut waiting: Vec<_> = waiting.map(|(id, (at, _))| (*at, id.clone())).collect();
        waiting.sort();
        waiting.truncate(limit);
        let hand_out = |(_, id): (Timestamp, String)| {
            self.claims += 1;
            let claim = Some((self.claims, steady.after(LEASE)));
            self.dues.entry(id.clone()).and_modify(|due| due.1 = claim);
            (id, self.claims)
        };
        waiting.into_iter().map(hand_out).collect()
    }

    fn complete(&mut self, claim: &DueClaim, next: Option<Timestamp>) -> Result<(), Refusal> {
        let id = &claim.due.id;
        let valid = self.dues.get(id).and_then(|(_, claim)| *claim);
        if valid.is_none_or(|(epoch, _)| epoch != claim.epoch) {
            return Err(Refusal::Fenced);
        }
        match next {
            Some(at) => _ = self.dues.insert(id.clone(), (at, None)),
            None => _ = self.dues.remove(id),
        }
        Ok(())
    }

    /// A new process: all leases and claims are free.
    fn reopen(&mut self) {
        self.streams.values_mut().for_each(|stream| stream.holder = None);
        self.dues.values_mut().for_each(|due| due.1 = None);
    }
}

/// A store, its model, and all leases and claims so far, valid or not.
struct Simulation {
    dice: Dice,
    folder: TempDir,
    clock: TestClock,
    store: Option<Sqlite>,
    model: Model,
    leases: Vec<Lease>,
    claims: Vec<DueClaim>,
    said: u64,
}

impl Simulation {
    async fn new(seed: u64) -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), TestClock::new());
        let (dice, model) = (Dice(seed), Model::default());
        let mut world = Self {
            dice,
            folder,
            clock,
            store: None,
            model,
            leases: vec![],
            claims: vec![],
            said: 0,
        };
        world.open().await;
        world
    }

    async fn open(&mut self) {
        self.store = None;
        let clock = Arc::new(self.clock.clone());
        self.store = Some(Sqlite::open_with(self.folder.path(), clock).await.unwrap());
        self.model.reopen();
    }

    fn store(&self) -> &Sqlite {
        self.store.as_ref().unwrap()
    }

    async fn request(&mut self) {
        match self.dice.below(16) {
            0 | 1 => self.claim().await,
            2 => self.renew_or_release().await,
            3..=6 => self.append().await,
            7 => self.put().await,
            8 => self.remove().await,
            9 => self.schedule().await,
            10 => self.claim_due().await,
            11 => self.complete().await,
            12 => self.clock.pass(Duration::from_secs(self.dice.below(12) as u64)),
            13 => self.clock.set_wall(self.dice.below(1200) as i64 - 600),
            14 => self.fail().await,
            _ if self.dice.below(4) == 0 => self.open().await,
            _ => {}
        }
    }

    async fn claim(&mut self) {
        let (name, owner) = (self.dice.one_of(&["s", "t"]), self.dice.one_of(&["ann", "ben"]));
        let claimed = self.store().claim(&StreamId::new(name).unwrap(), owner, LEASE).await;
        // The expiry comes from the store's own clock; the model copies it.
        let now = self.steady();
        let expected = self.model.claim(name, owner, now);
        assert_eq!(
            claimed.as_ref().map(|lease| lease.epoch).map_err(|e| Refusal::from(e.clone())),
            expected
        );
        self.leases.extend(claimed);
    }

    /// The monotonic clock, as the model counts it.
    fn steady(&self) -> Timestamp {
        use ostler_store::sqlite::Clock;
        Timestamp::default().after(self.clock.steady())
    }

    async fn renew_or_release(&mut self) {
        if self.leases.is_empty() {
            return;
        }
        let lease = self.dice.one_of(&self.leases);
        let now = self.steady();
        if self.dice.below(2) == 0 {
            let renewed = self.store().renew(&lease, LEASE).await.map(|lease| lease.epoch);
            let expected = self.model.held(&lease).map(|stream| {
                stream.holder = Some((lease.owner.clone(), now.after(LEASE)));
                stream.epoch
            });
            assert_eq!(renewed.map_err(Refusal::from), expected);
        } else {
            let released = self.store().release(&lease).await;
            let expected = self.model.held(&lease).map(|stream| stream.holder = None);
            assert_eq!(released.map_err(Refusal::from), expected);
        }
    }

    fn some_puts(&mut self) -> Vec<Put> {
        let count = self.dice.below(3);
        (0..count)
            .map(|_| {
                let (id, version) = (self.dice.one_of(&["x", "y", "z"]), self.dice.below(5) as u64);
                let expected = [Expected::Any, Expected::Absent, Expected::Version(version)];
                let expected = self.dice.one_of(&expected);
                Put::new("note", id, json!(self.dice.below(1000))).expected(expected)
            })
            .collect()
    }

    fn some_events(&mut self) -> Vec<(u64, Option<String>)> {
        let (count, keyed) = (self.dice.below(4), self.dice.below(2) == 0);
        (0..count)
            .map(|_| {
                self.said += 1;
                (self.said, keyed.then(|| format!("key {}", self.dice.below(30))))
            })
            .collect()
    }

    async fn append(&mut self) {
        if self.leases.is_empty() {
            return;
        }
        // Mostly the latest lease, or hardly anything would be appended.
        let latest = self.leases[self.leases.len() - 1].clone();
        let lease = if self.dice.below(4) == 0 { self.dice.one_of(&self.leases) } else { latest };
        let (events, puts) = (self.some_events(), self.some_puts());
        let fleeting = self.dice.below(3) == 0;
        let new = events.iter().map(|(said, key)| {
            let event = NewEvent { key: key.clone(), ..NewEvent::new("said", json!(said)) };
            if fleeting { event.fleeting() } else { event }
        });
        let done = self.store().append(&lease, new.collect(), puts.clone()).await;
        let numbers = done.map(|events| events.iter().map(|event| event.seq).collect());
        assert_eq!(numbers.map_err(Refusal::from), self.model.append(&lease, &events, &puts));
    }

    async fn put(&mut self) {
        let puts = self.some_puts();
        let done = self.store().put(puts.clone()).await;
        let versions = done.map(|records| records.iter().map(|record| record.version).collect());
        assert_eq!(versions.map_err(Refusal::from), self.model.put(&puts));
    }

    async fn remove(&mut self) {
        let (id, version) = (self.dice.one_of(&["x", "y", "z"]), self.dice.below(5) as u64);
        let expected =
            self.dice.one_of(&[Expected::Any, Expected::Absent, Expected::Version(version)]);
        let removed = self.store().remove("note", id, expected).await;
        assert_eq!(removed.map_err(Refusal::from), self.model.remove(id, expected));
    }

    async fn schedule(&mut self) {
        let id = self.dice.one_of(&["p", "q", "r"]);
        if self.dice.below(4) == 0 {
            self.store().unschedule(id).await.unwrap();
            self.model.dues.remove(id);
            return;
        }
        let wait = Duration::from_secs(self.dice.below(20) as u64);
        let at = self.store().now().await.unwrap().after(wait);
        self.store().schedule(Due { id: id.to_owned(), at, body: json!(id).into() }).await.unwrap();
        self.model.dues.insert(id.to_owned(), (at, None));
    }

    async fn claim_due(&mut self) {
        let limit = self.dice.below(4);
        let (wall, steady) = (self.store().now().await.unwrap(), self.steady());
        let claims = self.store().claim_due("me", LEASE, limit).await.unwrap();
        let claimed: Vec<_> =
            claims.iter().map(|claim| (claim.due.id.clone(), claim.epoch)).collect();
        assert_eq!(claimed, self.model.claim_due(wall, steady, limit));
        self.claims.extend(claims);
    }

    async fn complete(&mut self) {
        if self.claims.is_empty() {
            return;
        }
        let claim = self.dice.one_of(&self.claims);
        let later = self.store().now().await.unwrap().after(Duration::from_secs(5));
        let next = (self.dice.below(2) == 0).then_some(later);
        let completed = self.store().complete(&claim, next).await;
        assert_eq!(completed.map_err(Refusal::from), self.model.complete(&claim, next));
    }

    /// The disk is full for one commit: only this request fails, and nothing else changes.
    async fn fail(&mut self) {
        // Waits for fleeting events, which would be lost with the commit.
        self.store().put(vec![]).await.unwrap();
        self.store().fail_next_commit(FULL);
        let Some(lease) = self.leases.last().cloned() else {
            assert_eq!(self.store().put(vec![]).await.map_err(Refusal::from), Err(Refusal::Full));
            return;
        };
        let put = Put::new("note", "x", json!("never")).expected(Expected::Any);
        let event = NewEvent::new("said", json!("never"));
        let failed = self.store().append(&lease, vec![event], vec![put]).await;
        assert_eq!(failed.map_err(Refusal::from), Err(Refusal::Full));
    }

    /// Everything readable equals the model.
    async fn compare(&self) {
        let store = self.store();
        // Waits until all fleeting events are committed.
        store.put(vec![]).await.unwrap();
        for (name, expected) in &self.model.streams {
            let stream = StreamId::new(name).unwrap();
            let events = store.read_from(&stream, 0, 10_000).await.unwrap();
            let said = |event: &Event| (event.seq, event.body.to::<u64>().unwrap());
            let expected = (1..).zip(expected.events.iter().map(|(said, _)| *said));
            assert!(events.iter().map(said).eq(expected), "{name}: {events:?}");
            assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at), "{events:?}");
            store.verify(&stream).await.unwrap();
        }
        let records = store.list("note", &Filter::default(), &Page::default()).await.unwrap();
        let records = records.into_iter().map(|record| (record.id, (record.version, record.body)));
        assert_eq!(records.collect::<BTreeMap<_, _>>(), self.model.records);
    }
}

// Seen to fail when epochs, owners, lease times, keys, repetitions, versions or claims on timers are not checked,
// when a removed version or the epoch of a claim is reused, when a refused request is not rolled back, and when
// events and records are committed apart.
#[tokio::test]
async fn the_store_answers_random_requests_like_the_model() {
    for seed in 0..HISTORIES {
        // Printed when the test fails.
        println!("history {seed}");
        let mut world = Simulation::new(seed).await;
        for _ in 0..REQUESTS {
            world.request().await;
        }
        world.compare().await;
        world.open().await;
        world.compare().await;
    }
}
