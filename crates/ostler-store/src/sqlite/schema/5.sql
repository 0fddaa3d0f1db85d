-- The newest records of a session, and its records with a given state.
CREATE INDEX record_session_place ON record (kind, body ->> '$.session', body ->> '$.place')
    WHERE body ->> '$.session' IS NOT NULL AND body ->> '$.place' IS NOT NULL;
CREATE INDEX record_session_state ON record (kind, body ->> '$.session', body ->> '$.state', id)
    WHERE body ->> '$.session' IS NOT NULL;
-- The sessions of a space in the order in which they began, of all users and of one.
CREATE INDEX record_space ON record (kind, body ->> '$.setup.space', body ->> '$.begun')
    WHERE body ->> '$.setup.space' IS NOT NULL AND body ->> '$.begun' IS NOT NULL;
CREATE INDEX record_space_owner ON record (kind, body ->> '$.setup.space', owner, body ->> '$.begun')
    WHERE owner IS NOT NULL AND body ->> '$.setup.space' IS NOT NULL AND body ->> '$.begun' IS NOT NULL;
-- The rules of a user for a folder, the schedules that prompt a session, and the task that was executed in a session.
CREATE INDEX record_folder ON record (kind, owner, body ->> '$.folder', id)
    WHERE owner IS NOT NULL AND body ->> '$.folder' IS NOT NULL;
CREATE INDEX record_start_session ON record (kind, body ->> '$.start.session', id)
    WHERE body ->> '$.start.session' IS NOT NULL;
CREATE INDEX record_execution_session ON record (kind, body ->> '$.execution.session', id)
    WHERE body ->> '$.execution.session' IS NOT NULL;

UPDATE record SET body = json_set(body, '$.place', printf('%015d-%s', body ->> '$.ended', body ->> '$.run'))
    WHERE kind = 'usage' AND json_type(body, '$.ended') = 'integer' AND body ->> '$.place' IS NULL;
UPDATE record SET body = json_set(body, '$.place', printf('%015d-%s', body ->> '$.at', id))
    WHERE kind = 'changes' AND json_type(body, '$.at') = 'integer' AND body ->> '$.place' IS NULL;
UPDATE record SET body = json_set(body, '$.begun', printf('%015d-%s', body ->> '$.created', id))
    WHERE kind = 'session' AND json_type(body, '$.created') = 'integer' AND body ->> '$.begun' IS NULL;
