-- Gateways that are alive, or were until lately.
CREATE TABLE gateways (
	id         TEXT COLLATE "C" PRIMARY KEY,
	name       TEXT NOT NULL, -- of its host
	started_at TIMESTAMPTZ NOT NULL,
	until      TIMESTAMPTZ NOT NULL -- the end of its lease
);

-- Which gateway does what. Writes check gateway and epoch in their own transaction.
CREATE TABLE duties (
	name    TEXT COLLATE "C" PRIMARY KEY,
	gateway TEXT COLLATE "C" NOT NULL, -- '' for none
	epoch   BIGINT NOT NULL, -- grows with each grant
	since   TIMESTAMPTZ NOT NULL
);
CREATE INDEX duties_by_gateway ON duties (gateway);

-- The merged stream. Ids are given out in the order of commits: whoever appends holds the row of stream until it has committed.
CREATE TABLE stream (
	only_row BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (only_row),
	last_id  BIGINT NOT NULL
);
INSERT INTO stream (last_id) VALUES (0);

-- What is searched, each text once: a project's name and the text values of a record, without case and accents.
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE TABLE event_texts (
	id     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	digest BYTEA NOT NULL UNIQUE, -- of folded
	folded TEXT COLLATE "C" NOT NULL
);
CREATE INDEX event_texts_by_part ON event_texts USING gin (folded gin_trgm_ops);

CREATE TABLE events (
	id             BIGINT PRIMARY KEY,
	project        TEXT COLLATE "C" NOT NULL,
	type           TEXT COLLATE "C" NOT NULL,
	story_id       TEXT COLLATE "C" NOT NULL, -- '' for none
	text_id        BIGINT NOT NULL,
	timestamp_ms   BIGINT NOT NULL,
	received_at_ms BIGINT NOT NULL,
	record         TEXT NOT NULL -- not JSONB: it cannot hold every string that JSON can
);
CREATE INDEX events_by_project ON events (project, id);
CREATE INDEX events_by_type ON events (type, id);
CREATE INDEX events_by_project_type ON events (project, type, id);
CREATE INDEX events_by_story ON events (project, story_id, id) WHERE story_id <> '';
CREATE INDEX events_by_text ON events (text_id, id);

-- What was stored already, also when its event has been removed: the first 16 bytes of the record's SHA-256.
CREATE TABLE event_digests (
	project TEXT COLLATE "C" NOT NULL,
	digest  BYTEA NOT NULL,
	PRIMARY KEY (project, digest)
);

-- Reading positions. They outlive their project: adding it again continues where reading ended.
CREATE TABLE feed_cursors (
	project  TEXT COLLATE "C" NOT NULL,
	url      TEXT COLLATE "C" NOT NULL,
	since    BIGINT NOT NULL,
	instance TEXT NOT NULL,
	sequence BIGINT NOT NULL,
	PRIMARY KEY (project, url)
);
