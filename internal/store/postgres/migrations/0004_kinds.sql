-- The project that had the first event of a kind, which counts for what it may add; 0 where it does not count.
ALTER TABLE event_kinds ADD COLUMN project_id BIGINT NOT NULL DEFAULT 0;
