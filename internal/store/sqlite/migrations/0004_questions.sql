-- What agents and programs ask people.
CREATE TABLE questions (
	id            INTEGER PRIMARY KEY,
	project       TEXT NOT NULL, -- '' for none
	story_id      TEXT NOT NULL, -- '' for none
	kind          TEXT NOT NULL,
	prompt        TEXT NOT NULL,
	detail        TEXT NOT NULL,
	options       TEXT NOT NULL, -- JSON
	tool          TEXT NOT NULL, -- JSON, '' for none
	tool_key      TEXT NOT NULL, -- by which the same use of a tool is known, '' for none
	asker         TEXT NOT NULL, -- an account
	agent_id      TEXT NOT NULL, -- '' unless an agent asks
	asked_by      TEXT NOT NULL, -- the asker's name
	asked_at_ms   BIGINT NOT NULL,
	expires_at_ms BIGINT NOT NULL,
	state         TEXT NOT NULL,
	value         TEXT NOT NULL, -- of the answer
	text          TEXT NOT NULL, -- beside it
	answered_by   TEXT NOT NULL,
	via           TEXT NOT NULL,
	ended_at_ms   BIGINT NOT NULL -- 0 while it is open
);
CREATE UNIQUE INDEX questions_of_tool ON questions (asker, tool_key) WHERE state = 'open' AND tool_key <> '';
CREATE INDEX questions_by_end ON questions (ended_at_ms, id);
CREATE INDEX questions_of_project ON questions (project, id);
