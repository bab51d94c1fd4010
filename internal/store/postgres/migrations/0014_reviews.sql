-- The last verdict on the work on a story. The stream has the former ones.
CREATE TABLE reviews (
	project  TEXT COLLATE "C" NOT NULL,
	story_id TEXT COLLATE "C" NOT NULL,
	verdict  TEXT COLLATE "C" NOT NULL,
	head     TEXT COLLATE "C" NOT NULL, -- the commit that was looked at
	note     TEXT COLLATE "C" NOT NULL, -- '' for none
	by_whom  TEXT COLLATE "C" NOT NULL,
	via      TEXT COLLATE "C" NOT NULL,
	at_ms    BIGINT NOT NULL,
	taken_ms BIGINT NOT NULL, -- when an agent got it, 0 before
	PRIMARY KEY (project, story_id)
);

-- Where changes by the holder of a claim go, '' for where the story is.
ALTER TABLE claims ADD COLUMN worktree TEXT COLLATE "C" NOT NULL DEFAULT '';
