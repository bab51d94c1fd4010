-- Stays are moved as events are, see 0008_events.sql: their index keeps its name, stays_by_end.
ALTER TABLE stays RENAME TO old_stays;

CREATE TABLE stays (
	text_id               INTEGER NOT NULL, -- a text of the story, which has its project and id
	number                BIGINT NOT NULL, -- grows from one stay of a story to the next
	stage                 TEXT NOT NULL, -- '' while it is not known
	from_ms               BIGINT NOT NULL, -- 0 where the arrival is not known
	to_ms                 BIGINT NOT NULL, -- 0 while the story is there
	next_stage            TEXT NOT NULL, -- '' when it left the board, or while it is there
	shown                 BOOLEAN NOT NULL, -- only a pipeline showed it
	blocked_ms            BIGINT NOT NULL, -- without a block that lasts
	blocked_since_ms      BIGINT NOT NULL,
	merge_failed_since_ms BIGINT NOT NULL,
	PRIMARY KEY (text_id, number)
) WITHOUT ROWID;
CREATE INDEX stays_of_end ON stays (to_ms);
