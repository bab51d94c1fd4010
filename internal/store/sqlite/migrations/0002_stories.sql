-- Every story that the stream ever told of, by its newest name.
CREATE TABLE stories (
	project    TEXT NOT NULL,
	story_id   TEXT NOT NULL,
	story_name TEXT NOT NULL,
	folded     TEXT NOT NULL, -- id and name without case and accents, one a line, for searching
	PRIMARY KEY (project, story_id)
);

INSERT INTO stories (project, story_id, story_name, folded)
SELECT project, id, name, fold(id || char(10) || name) FROM (
	SELECT project, json_extract(record, '$.story_id') AS id, COALESCE(json_extract(record, '$.story_name'), '') AS name, MAX(events.id)
	FROM events
	WHERE type IN ('stage_transition', 'merge_failure', 'story_blocked') AND json_type(record, '$.story_id') = 'text'
	GROUP BY 1, 2
);

CREATE INDEX events_by_story ON events (project, json_extract(record, '$.story_id'), id);
