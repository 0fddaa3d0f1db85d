-- Lists by what happened last: a place is a time and the id, so that no two are the same.
CREATE INDEX record_place ON record (kind, body ->> '$.place') WHERE body ->> '$.place' IS NOT NULL;
CREATE INDEX record_owner_place ON record (kind, owner, body ->> '$.place')
    WHERE owner IS NOT NULL AND body ->> '$.place' IS NOT NULL;

-- Sessions from before have had nothing happen since they were made, as far as their records say.
UPDATE record SET body = json_set(body,
        '$.place', printf('%015d-%s', body ->> '$.created', id),
        '$.search', lower(body ->> '$.title'))
    WHERE kind = 'session' AND json_type(body, '$.created') = 'integer' AND body ->> '$.place' IS NULL;
