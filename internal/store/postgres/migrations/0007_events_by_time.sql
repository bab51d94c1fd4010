-- Pages list events by time. The events of a type are found by its texts.
CREATE INDEX events_by_time ON events (timestamp_ms, id);
DROP INDEX events_of_type;
CREATE INDEX texts_of_type ON texts (type);
DROP INDEX events_of_project;
CREATE INDEX events_of_project ON events (project, id, type, story, text, timestamp_ms);
