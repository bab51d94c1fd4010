-- What is known of a question so that it can be asked twice.
DROP INDEX questions_of_tool;
ALTER TABLE questions ADD COLUMN session TEXT NOT NULL DEFAULT ''; -- of the coding agent, '' where it is not known
ALTER TABLE questions ADD COLUMN use_id TEXT NOT NULL DEFAULT ''; -- the client's id of the use of a tool, '' for none
ALTER TABLE questions ADD COLUMN lasting INTEGER NOT NULL DEFAULT 1; -- whether it stays open though nobody holds it
ALTER TABLE questions ADD COLUMN held_until_ms BIGINT NOT NULL DEFAULT 0; -- which gateways that hold it put off
ALTER TABLE questions ADD COLUMN reached TEXT NOT NULL DEFAULT ''; -- the ways by which its answer has reached holders
CREATE INDEX questions_of_asker ON questions (asker, ended_at_ms, expires_at_ms);
CREATE INDEX questions_by_key ON questions (asker, tool_key, id);
CREATE INDEX open_questions ON questions (expires_at_ms) WHERE ended_at_ms = 0;
