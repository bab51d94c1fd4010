-- What was stored so far is moved into the new tables step by step while the gateway serves, see upgrade.go. Its indexes keep
-- their names: events_by_project, events_by_type and events_by_story.
ALTER TABLE events RENAME TO old_events;
ALTER TABLE stories RENAME TO old_stories;

-- The projects that the stream has or had events of.
CREATE TABLE event_projects (
	id     INTEGER PRIMARY KEY,
	name   TEXT NOT NULL UNIQUE,
	folded TEXT NOT NULL -- without case and accents, for searching
);

-- What many events have in common.
CREATE TABLE event_kinds (
	id         INTEGER PRIMARY KEY,
	type       TEXT NOT NULL,
	from_stage TEXT NOT NULL, -- '' but for transitions
	to_stage   TEXT NOT NULL,
	folded     TEXT NOT NULL,
	UNIQUE (type, from_stage, to_stage)
);

-- The other texts of events, each once: a story's id and name, with a reason or without.
CREATE TABLE event_texts (
	id         INTEGER PRIMARY KEY,
	project_id INTEGER NOT NULL,
	story_id   TEXT NOT NULL, -- '' for none
	story_name TEXT NOT NULL,
	more       TEXT NOT NULL, -- a reason; of a record of another form its further texts, one a line
	digest     BIGINT NOT NULL, -- of story_name and more
	UNIQUE (project_id, story_id, digest)
);

-- The trigrams of event_texts, folded, without case and accents: parts of words are found.
CREATE VIRTUAL TABLE event_words USING fts5 (words, content = '', columnsize = 0, detail = 'none', tokenize = 'trigram case_sensitive 1');

-- The merged stream. Ids are given out by the appending transaction, so they are strictly increasing in commit order.
CREATE TABLE events (
	id             INTEGER PRIMARY KEY,
	project_id     INTEGER NOT NULL,
	kind_id        INTEGER NOT NULL,
	text_id        INTEGER NOT NULL, -- 0 for none
	timestamp_ms   BIGINT NOT NULL,
	received_at_ms BIGINT NOT NULL,
	record         TEXT -- NULL where the other columns say all that it holds
);
-- An index holds the id of each of its rows, behind these columns.
CREATE INDEX events_of_project ON events (project_id);
CREATE INDEX events_of_kind ON events (kind_id);
CREATE INDEX events_of_project_kind ON events (project_id, kind_id);
CREATE INDEX events_of_text ON events (text_id);

-- What was stored already, also when its event has been removed: the first 8 bytes of the record's SHA-256.
CREATE TABLE event_digests (
	project_id INTEGER NOT NULL,
	digest     BIGINT NOT NULL,
	PRIMARY KEY (project_id, digest)
) WITHOUT ROWID;

-- Every story that the stream or a pipeline ever told of, by the text with its newest name.
CREATE TABLE stories (
	project_id INTEGER NOT NULL,
	story_id   TEXT NOT NULL,
	text_id    INTEGER NOT NULL,
	PRIMARY KEY (project_id, story_id)
) WITHOUT ROWID;
