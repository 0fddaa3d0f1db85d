CREATE TABLE stream (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    epoch       INTEGER NOT NULL,
    owner       TEXT,
    lease_until INTEGER NOT NULL,
    -- The last event: its number, its hash, its time.
    head        INTEGER NOT NULL,
    hash        BLOB NOT NULL,
    at          INTEGER NOT NULL
) STRICT;

CREATE TABLE event (
    stream INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    epoch  INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    key    TEXT,
    hash   BLOB NOT NULL,
    -- Last, because it is long: the rest is read without it.
    body   TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX event_seq ON event (stream, seq);
CREATE UNIQUE INDEX event_key ON event (stream, key) WHERE key IS NOT NULL;

CREATE TABLE record (
    kind    TEXT NOT NULL,
    id      TEXT NOT NULL,
    version INTEGER NOT NULL,
    owner   TEXT,
    updated INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX record_id ON record (kind, id);
CREATE INDEX record_owner ON record (kind, owner, id) WHERE owner IS NOT NULL;
CREATE INDEX record_state ON record (kind, body ->> '$.state', id);
CREATE INDEX record_owner_state ON record (kind, owner, body ->> '$.state', id) WHERE owner IS NOT NULL;

CREATE TABLE due (
    id          TEXT PRIMARY KEY,
    at          INTEGER NOT NULL,
    body        TEXT NOT NULL,
    -- The number of the claim on it; 0 when there was none since it was scheduled.
    epoch       INTEGER NOT NULL,
    owner       TEXT,
    lease_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX due_at ON due (at);

CREATE TABLE counter (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The last claim on something due, and the highest version a removed record had: neither is ever used again.
INSERT INTO counter VALUES ('due_epoch', 0), ('removed_version', 0);
