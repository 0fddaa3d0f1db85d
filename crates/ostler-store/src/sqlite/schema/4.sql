-- Parts of something that comes whole later. They have numbers like events, and no hash: when the whole is there they go.
CREATE TABLE draft (
    stream INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    part   TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (stream, seq)
) STRICT, WITHOUT ROWID;

-- The last event that was trimmed off the beginning, and its hash: there the chain goes on.
ALTER TABLE stream ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
ALTER TABLE stream ADD COLUMN base_hash BLOB;

-- The highest epoch that a forgotten stream had: no lease on it is ever valid again.
INSERT INTO counter VALUES ('forgotten_epoch', 0);
