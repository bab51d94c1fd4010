-- The last verdict on the work on a story. The stream has the former ones.
CREATE TABLE reviews (
	project  TEXT NOT NULL,
	story_id TEXT NOT NULL,
	verdict  TEXT NOT NULL,
	head     TEXT NOT NULL, -- the commit that was looked at
	note     TEXT NOT NULL, -- '' for none
	by_whom  TEXT NOT NULL,
	via      TEXT NOT NULL,
	at_ms    INTEGER NOT NULL,
	taken_ms INTEGER NOT NULL, -- when an agent got it, 0 before
	PRIMARY KEY (project, story_id)
);

-- Where changes by the holder of a claim go, '' for where the story is.
ALTER TABLE claims ADD COLUMN worktree TEXT NOT NULL DEFAULT '';
