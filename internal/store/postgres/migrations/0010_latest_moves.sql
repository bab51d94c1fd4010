-- The newest moves of a history, with their authors, in JSON.
ALTER TABLE histories ADD COLUMN latest TEXT NOT NULL DEFAULT '[]';
