-- Databases that programs before the first release made have another application_id, and are refused.
PRAGMA application_id = 0x53775964;

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
	used_by       TEXT NOT NULL DEFAULT '', -- the id of the agent that it made
	project       TEXT NOT NULL DEFAULT '' -- what the agent is assigned to as soon as it joins, '' for nothing
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

-- What must not be acted on twice: logins that have had their callback, requests of chat servers.
CREATE TABLE seen_once (
	kind   TEXT NOT NULL,
	digest TEXT NOT NULL, -- SHA-256
	at_ms  BIGINT NOT NULL,
	PRIMARY KEY (kind, digest)
);
CREATE INDEX seen_once_by_time ON seen_once (kind, at_ms);

-- Logins that have not ended. Their cookies hold the id, signed and encrypted.
CREATE TABLE sessions (
	id            TEXT PRIMARY KEY,
	who           TEXT NOT NULL,
	account       TEXT NOT NULL, -- the id of whoever logged in
	via           TEXT NOT NULL, -- the way in
	role          TEXT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	last_seen_ms  BIGINT NOT NULL,
	token_id      TEXT NOT NULL DEFAULT '' -- the named token that it ends with, '' for none
);

-- Tokens that administrators gave out, and those of agents' commands.
CREATE TABLE named_tokens (
	id            TEXT PRIMARY KEY,
	name          TEXT NOT NULL,
	role          TEXT NOT NULL,
	hash          TEXT NOT NULL UNIQUE, -- SHA-256 of the token
	project       TEXT NOT NULL, -- limits changes to it; '' is no limit
	agent_id      TEXT NOT NULL, -- the agent that it was made for, '' for none
	created_at_ms BIGINT NOT NULL,
	expires_at_ms BIGINT NOT NULL, -- 0 is never
	last_used_ms  BIGINT NOT NULL -- 0 is never
);

-- Who changed what. Each row is written in the transaction of its change, where that is made in this database.
CREATE TABLE audit (
	id         INTEGER PRIMARY KEY,
	at_ms      BIGINT NOT NULL,
	who        TEXT NOT NULL,
	via        TEXT NOT NULL, -- the way in
	role       TEXT NOT NULL, -- '' where the change needed none
	action     TEXT NOT NULL,
	subject    TEXT NOT NULL,
	detail     TEXT NOT NULL, -- before and after, without secrets
	request_id TEXT NOT NULL, -- '' where no HTTP request asked for it
	account    TEXT NOT NULL, -- the id of whoever made a change that repeats, else ''
	times      INTEGER NOT NULL -- how often within a minute; 0 for changes that do not repeat
);
CREATE INDEX audit_by_time ON audit (at_ms);
CREATE INDEX audit_repeated ON audit (account, at_ms) WHERE times > 0;
CREATE INDEX audit_by_who ON audit (who, id);
CREATE INDEX audit_by_action ON audit (action, id);

-- Removed projects that can still be restored.
CREATE TABLE removals (
	id      TEXT PRIMARY KEY,
	removal TEXT NOT NULL, -- JSON; it holds the project's token
	at_ms   BIGINT NOT NULL
);

-- Who takes care of which alert, as long as its trouble lasts.
CREATE TABLE acknowledgements (
	key      TEXT PRIMARY KEY,
	project  TEXT NOT NULL, -- '' for none
	text     TEXT NOT NULL, -- the alert's; another one ends it
	by_whom  TEXT NOT NULL,
	at_ms    BIGINT NOT NULL,
	until_ms BIGINT NOT NULL, -- 0 for as long as the trouble lasts
	since_ms BIGINT NOT NULL DEFAULT 0 -- when the trouble began; 0 where that is not known
);

-- The merged stream. Ids are given out by the appending transaction, so they are strictly increasing in commit order. All but the
-- first columns are read from the record and take no space; where it has no such text they are ''.
CREATE TABLE events (
	id             INTEGER PRIMARY KEY,
	project        TEXT NOT NULL,
	received_at_ms BIGINT NOT NULL,
	record         TEXT NOT NULL, -- JSON; SQLite cannot read it if it is nested too deep
	timestamp_ms   BIGINT AS (iif(json_valid(record), record ->> '$.timestamp_ms', 0)),
	type           TEXT AS (iif(json_valid(record) AND json_type(record, '$.type') = 'text', record ->> '$.type', '')),
	story_id       TEXT AS (iif(json_valid(record) AND json_type(record, '$.story_id') = 'text', record ->> '$.story_id', '')),
	story_name     TEXT AS (iif(json_valid(record) AND json_type(record, '$.story_name') = 'text', record ->> '$.story_name', '')),
	from_stage     TEXT AS (iif(json_valid(record) AND json_type(record, '$.from_stage') = 'text', record ->> '$.from_stage', '')),
	to_stage       TEXT AS (iif(json_valid(record) AND json_type(record, '$.to_stage') = 'text', record ->> '$.to_stage', ''))
);
-- An index holds the id of each of its rows, behind these columns. A project's events of a type are found among all of its.
CREATE INDEX events_of_project ON events (project, id, type);
CREATE INDEX events_of_type ON events (type);
CREATE INDEX events_of_story ON events (project, story_id);

-- The trigrams of the texts of each event, folded, without case and accents: parts of words are found, and the newest events first.
CREATE VIRTUAL TABLE event_words USING fts5 (
	words, content = '', contentless_delete = 1, detail = 'none', tokenize = 'trigram case_sensitive 1'
);
-- Each writing transaction merges a little of the index; much of it at once, which takes up to seconds, only where that is not enough.
-- Segments are merged 16 at a time: each page is written half as often as with 4.
INSERT INTO event_words (event_words, rank) VALUES ('automerge', 0), ('crisismerge', 500), ('usermerge', 16);
CREATE TRIGGER events_removed AFTER DELETE ON events BEGIN DELETE FROM event_words WHERE rowid = OLD.id; END;
-- The trigrams that event_words has, to find those that begin with one or two characters. It is a view that takes no space.
CREATE VIRTUAL TABLE event_trigrams USING fts5vocab (event_words, 'row');

-- What was stored already, also when its event has been removed: the first 8 bytes of the SHA-256 of project and record.
CREATE TABLE event_digests (digest INTEGER PRIMARY KEY);

-- Every story that the stream or a pipeline ever told of, by its newest name.
CREATE TABLE stories (
	id         INTEGER PRIMARY KEY,
	project    TEXT NOT NULL,
	story_id   TEXT NOT NULL,
	story_name TEXT NOT NULL,
	UNIQUE (project, story_id)
);
CREATE VIRTUAL TABLE story_words USING fts5 (
	words, content = '', contentless_delete = 1, detail = 'none', tokenize = 'trigram case_sensitive 1'
);
INSERT INTO story_words (story_words, rank) VALUES ('automerge', 0), ('crisismerge', 500), ('usermerge', 16);

-- The stages that stories have been in: the source of ages, times in stages and charts. They outlive the events that they come from.
CREATE TABLE stage_visits (
	project               TEXT NOT NULL,
	story_id              TEXT NOT NULL,
	number                BIGINT NOT NULL, -- in the order of a story's visits
	stage                 TEXT NOT NULL, -- '' if unknown
	from_ms               BIGINT NOT NULL, -- 0 if unknown
	to_ms                 BIGINT NOT NULL, -- 0 while the story is there
	next_stage            TEXT NOT NULL, -- '' when it left the board, or while it is there
	source                TEXT NOT NULL, -- '' for an event; board: only a pipeline has shown it
	blocked_ms            BIGINT NOT NULL, -- without a current block
	blocked_since_ms      BIGINT NOT NULL,
	merge_failed_since_ms BIGINT NOT NULL,
	event_ms              BIGINT NOT NULL, -- when the last event about the story was received, 0 if a later visit has it
	PRIMARY KEY (project, story_id, number)
) WITHOUT ROWID;
CREATE INDEX stage_visits_of_project ON stage_visits (project, to_ms);

-- What the limits of a project's visits go by.
CREATE TABLE visit_counts (
	project     TEXT PRIMARY KEY,
	open_visits BIGINT NOT NULL,
	stages      TEXT NOT NULL -- the names of all stages, as JSON
);
