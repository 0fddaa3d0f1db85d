-- What the server looks for all the time: the runs of a session, the requests of a run, the same request from before.
CREATE INDEX record_session ON record (kind, body ->> '$.session', id) WHERE body ->> '$.session' IS NOT NULL;
CREATE INDEX record_run ON record (kind, body ->> '$.run', id) WHERE body ->> '$.run' IS NOT NULL;
CREATE INDEX record_digest ON record (kind, body ->> '$.digest', owner, id) WHERE body ->> '$.digest' IS NOT NULL;
