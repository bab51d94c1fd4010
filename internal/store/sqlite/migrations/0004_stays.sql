-- Where stories have been: the source of ages, times in stages and charts. They outlive the events that they come from.
CREATE TABLE stays (
	project               TEXT NOT NULL,
	story_id              TEXT NOT NULL,
	number                BIGINT NOT NULL, -- grows from one stay of a story to the next
	stage                 TEXT NOT NULL, -- '' while it is not known
	from_ms               BIGINT NOT NULL, -- 0 where the arrival is not known
	to_ms                 BIGINT NOT NULL, -- 0 while the story is there
	next_stage            TEXT NOT NULL, -- '' when it left the board, or while it is there
	shown                 BOOLEAN NOT NULL, -- only a pipeline showed it
	blocked_ms            BIGINT NOT NULL, -- without a block that lasts
	blocked_since_ms      BIGINT NOT NULL,
	merge_failed_since_ms BIGINT NOT NULL,
	PRIMARY KEY (project, story_id, number)
);
CREATE INDEX stays_by_end ON stays (to_ms);
