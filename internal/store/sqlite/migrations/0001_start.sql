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

-- The merged stream. Ids are given out by the appending transaction, so they are strictly increasing in commit order.
CREATE TABLE stream (
	only_row BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (only_row),
	last_id  BIGINT NOT NULL -- the greatest that was ever given out
);
INSERT INTO stream (last_id) VALUES (0);
CREATE TABLE events (
	id             INTEGER PRIMARY KEY,
	project        TEXT NOT NULL,
	received_at_ms BIGINT NOT NULL,
	timestamp_ms   BIGINT NOT NULL,
	type           TEXT NOT NULL, -- '' where the record has no such text
	story          BIGINT NOT NULL, -- the id in stories, 0 for none
	text           BIGINT NOT NULL, -- the id in texts
	record         TEXT NOT NULL -- JSON
);
-- An index holds the id of each of its rows, behind these columns. Searches read only the indexes.
CREATE INDEX events_of_project ON events (project, id, type, story, text);
CREATE INDEX events_of_type ON events (type);
CREATE INDEX events_of_story ON events (story, id, text);
CREATE INDEX events_of_text ON events (text);

-- The texts of events, but those of their stories, folded, without case and accents, each on a line: many events have the same.
CREATE TABLE texts (
	id     INTEGER PRIMARY KEY,
	digest BIGINT NOT NULL UNIQUE, -- the first 8 bytes of the SHA-256 of type and words
	type   TEXT NOT NULL,
	words  TEXT NOT NULL
);
-- Every story that the stream or a pipeline ever told of, by its newest name.
CREATE TABLE stories (
	id         INTEGER PRIMARY KEY,
	project    TEXT NOT NULL,
	story_id   TEXT NOT NULL,
	story_name TEXT NOT NULL,
	words      TEXT NOT NULL, -- its id and all names, as those of texts
	UNIQUE (project, story_id)
);

-- The trigrams of these words: parts of words are found.
CREATE VIRTUAL TABLE text_words USING fts5 (
	words, content = 'texts', content_rowid = 'id', columnsize = 0, tokenize = 'trigram case_sensitive 1'
);
CREATE TRIGGER texts_added AFTER INSERT ON texts BEGIN
	INSERT INTO text_words (rowid, words) VALUES (NEW.id, NEW.words);
END;
CREATE TRIGGER texts_removed AFTER DELETE ON texts BEGIN
	INSERT INTO text_words (text_words, rowid, words) VALUES ('delete', OLD.id, OLD.words);
END;
CREATE VIRTUAL TABLE story_words USING fts5 (
	words, content = 'stories', content_rowid = 'id', columnsize = 0, tokenize = 'trigram case_sensitive 1'
);
CREATE TRIGGER stories_added AFTER INSERT ON stories BEGIN
	INSERT INTO story_words (rowid, words) VALUES (NEW.id, NEW.words);
END;
CREATE TRIGGER stories_renamed AFTER UPDATE OF words ON stories WHEN OLD.words <> NEW.words BEGIN
	INSERT INTO story_words (story_words, rowid, words) VALUES ('delete', OLD.id, OLD.words);
	INSERT INTO story_words (rowid, words) VALUES (NEW.id, NEW.words);
END;

-- What was stored already, also when its event has been removed: the first 8 bytes of the SHA-256 of project and record.
CREATE TABLE event_digests (digest INTEGER PRIMARY KEY);

-- The stages that stories have been in: the source of ages, times in stages and charts. They outlive the events that they come from.
CREATE TABLE stage_visits (
	story                 BIGINT NOT NULL, -- the id in stories
	number                BIGINT NOT NULL, -- in the order of a story's visits
	project               TEXT NOT NULL,
	stage                 TEXT NOT NULL, -- '' if unknown
	from_ms               BIGINT NOT NULL, -- 0 if unknown
	to_ms                 BIGINT NOT NULL, -- 0 while the story is there
	next_stage            TEXT NOT NULL, -- '' when it left the board, or while it is there
	source                TEXT NOT NULL, -- '' for an event; board: only a pipeline has shown it
	blocked_ms            BIGINT NOT NULL, -- without a current block
	blocked_since_ms      BIGINT NOT NULL,
	merge_failed_since_ms BIGINT NOT NULL,
	event_ms              BIGINT NOT NULL, -- when the last event about the story was received, 0 if a later visit has it
	PRIMARY KEY (story, number)
) WITHOUT ROWID;
CREATE INDEX stage_visits_of_project ON stage_visits (project, to_ms);

-- What the limits of a project's visits go by.
CREATE TABLE visit_counts (
	project     TEXT PRIMARY KEY,
	open_visits BIGINT NOT NULL,
	stages      TEXT NOT NULL -- the names of all stages, as JSON
);
