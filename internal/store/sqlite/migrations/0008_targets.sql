-- Where messages about events and alerts go. People change the columns up to revision, the leader the others.
CREATE TABLE targets (
	id              TEXT PRIMARY KEY,
	owner           TEXT NOT NULL, -- an account, '' for an administrator's target
	name            TEXT NOT NULL,
	url             TEXT NOT NULL,
	secret          TEXT NOT NULL, -- of a webhook, '' for others
	former          TEXT NOT NULL, -- the secret before, '' for none
	former_until_ms BIGINT NOT NULL,
	rules           TEXT NOT NULL, -- JSON
	enabled         BIGINT NOT NULL, -- 0 or 1
	created_at_ms   BIGINT NOT NULL,
	revision        BIGINT NOT NULL,
	position        BIGINT NOT NULL, -- the event up to which it is told
	told            TEXT NOT NULL, -- JSON: alerts by key
	progress        TEXT NOT NULL -- JSON
);
-- Messages that wait besides the events after a target's position.
CREATE TABLE target_messages (
	id          INTEGER PRIMARY KEY,
	target      TEXT NOT NULL,
	after_event BIGINT NOT NULL,
	message     TEXT NOT NULL -- JSON
);
CREATE INDEX target_messages_of_target ON target_messages (target, id);
-- The last attempts of each target.
CREATE TABLE deliveries (
	id         INTEGER PRIMARY KEY,
	target     TEXT NOT NULL,
	at_ms      BIGINT NOT NULL,
	message_id TEXT NOT NULL,
	what       TEXT NOT NULL,
	attempt    BIGINT NOT NULL,
	status     BIGINT NOT NULL, -- 0 without an answer
	error      TEXT NOT NULL, -- '' if it was accepted
	took_ms    BIGINT NOT NULL,
	message    TEXT NOT NULL -- JSON, '' if it need not be sent again
);
CREATE INDEX deliveries_of_target ON deliveries (target, id);
CREATE TABLE delivery_hours (
	target  TEXT NOT NULL,
	hour_ms BIGINT NOT NULL,
	sent    BIGINT NOT NULL,
	failed  BIGINT NOT NULL,
	PRIMARY KEY (target, hour_ms)
);
-- What targets were told at once.
CREATE TABLE digests (
	id          TEXT PRIMARY KEY,
	target      TEXT NOT NULL,
	name        TEXT NOT NULL, -- of the target
	at_ms       BIGINT NOT NULL,
	after_event BIGINT NOT NULL,
	upto_event  BIGINT NOT NULL,
	content     TEXT NOT NULL -- JSON
);
CREATE INDEX digests_of_target ON digests (target, at_ms);
CREATE INDEX digests_by_time ON digests (at_ms);
