-- Frequent queries: the runs of a session, the requests of a run, and an earlier request with the same digest.
CREATE INDEX record_session ON record (kind, body ->> '$.session', id) WHERE body ->> '$.session' IS NOT NULL;
CREATE INDEX record_run ON record (kind, body ->> '$.run', id) WHERE body ->> '$.run' IS NOT NULL;
CREATE INDEX record_digest ON record (kind, body ->> '$.digest', owner, id) WHERE body ->> '$.digest' IS NOT NULL;
