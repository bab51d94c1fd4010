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

ALTER TABLE sessions ADD COLUMN token_id TEXT NOT NULL DEFAULT ''; -- the named token that it ends with, '' for none
UPDATE sessions SET via = 'admin_token' WHERE via = 'token';
