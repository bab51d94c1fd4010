-- Small durable values: the active project, the bot's cursor and device, keys.
CREATE TABLE state (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
);

CREATE TABLE projects (
	name  TEXT PRIMARY KEY,
	url   TEXT NOT NULL,
	token TEXT NOT NULL DEFAULT ''
);

-- The merged stream. Ids are given out by the appending transaction, so they are strictly increasing in commit order.
CREATE TABLE events (
	id             INTEGER PRIMARY KEY,
	project        TEXT NOT NULL,
	type           TEXT NOT NULL,
	timestamp_ms   BIGINT NOT NULL,
	received_at_ms BIGINT NOT NULL,
	record         TEXT NOT NULL,
	words          TEXT NOT NULL, -- project and the record's text values in lower case, for searching
	digest         BLOB NOT NULL, -- SHA-256 of record, the first 16 bytes
	UNIQUE (project, digest)
);
CREATE INDEX events_by_project ON events (project, id);
CREATE INDEX events_by_type ON events (type, id);

-- Reading positions. They outlive their project: adding it again continues where reading ended.
CREATE TABLE feed_cursors (
	project  TEXT NOT NULL,
	url      TEXT NOT NULL,
	since    BIGINT NOT NULL,
	instance TEXT NOT NULL,
	sequence BIGINT NOT NULL,
	PRIMARY KEY (project, url)
);

CREATE TABLE join_tokens (
	hash          TEXT PRIMARY KEY, -- SHA-256 of the token
	created_at_ms BIGINT NOT NULL,
	expires_at_ms BIGINT NOT NULL,
	used_at_ms    BIGINT NOT NULL DEFAULT 0,
	used_by       TEXT NOT NULL DEFAULT '' -- the id of the agent that it made
);

CREATE TABLE agents (
	id               TEXT PRIMARY KEY,
	label            TEXT NOT NULL,
	version          TEXT NOT NULL DEFAULT '',
	secret_hash      TEXT NOT NULL, -- SHA-256 of the secret
	state            TEXT NOT NULL,
	detail           TEXT NOT NULL DEFAULT '',
	assigned_project TEXT NOT NULL DEFAULT '', -- '' is unassigned
	joined_at_ms     BIGINT NOT NULL,
	state_since_ms   BIGINT NOT NULL,
	last_seen_ms     BIGINT NOT NULL
);
