-- The project that the agent is assigned to as soon as it joins, '' for none.
ALTER TABLE join_tokens ADD COLUMN project TEXT NOT NULL DEFAULT '';
