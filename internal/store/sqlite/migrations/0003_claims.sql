-- Who works on which story.
CREATE TABLE claims (
	project  TEXT NOT NULL,
	story_id TEXT NOT NULL,
	holder   TEXT NOT NULL, -- an account; claims of the same one are the same holder's
	by_whom  TEXT NOT NULL, -- the holder's name
	agent_id TEXT NOT NULL, -- '' unless an agent holds it
	since_ms BIGINT NOT NULL,
	stage    TEXT NOT NULL, -- where the story was when it was claimed, '' if unknown
	PRIMARY KEY (project, story_id)
);
CREATE INDEX claims_of_agent ON claims (agent_id);

-- What was done to stories through the gateway, which the events of their histories do not say.
CREATE TABLE story_changes (
	project  TEXT NOT NULL,
	story_id TEXT NOT NULL,
	type     TEXT NOT NULL, -- of the event
	value    TEXT NOT NULL, -- the stage or the reason
	at_ms    BIGINT NOT NULL,
	by_whom  TEXT NOT NULL,
	via      TEXT NOT NULL
);
CREATE INDEX story_changes_of_story ON story_changes (project, story_id, at_ms);
CREATE INDEX story_changes_by_time ON story_changes (at_ms);
