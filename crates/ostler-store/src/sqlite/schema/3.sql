-- Lists by last activity: a place is a time and the id, so that it is unique.
CREATE INDEX record_place ON record (kind, body ->> '$.place') WHERE body ->> '$.place' IS NOT NULL;
CREATE INDEX record_owner_place ON record (kind, owner, body ->> '$.place')
    WHERE owner IS NOT NULL AND body ->> '$.place' IS NOT NULL;

-- The records of earlier sessions have no activity after their creation.
UPDATE record SET body = json_set(body,
        '$.place', printf('%015d-%s', body ->> '$.created', id),
        '$.search', lower(body ->> '$.title'))
    WHERE kind = 'session' AND json_type(body, '$.created') = 'integer' AND body ->> '$.place' IS NULL;
