-- Parts of something that arrives complete later. They have numbers like events, and no hash, because they are dropped
-- when the complete event arrives.
CREATE TABLE draft (
    stream INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    part   TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (stream, seq)
) STRICT, WITHOUT ROWID;

-- The last event that was trimmed off the beginning, and its hash: the chain continues from there.
ALTER TABLE stream ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
ALTER TABLE stream ADD COLUMN base_hash BLOB;

-- The highest epoch of all deleted streams: no lease on them is ever valid again.
INSERT INTO counter VALUES ('forgotten_epoch', 0);
