-- Who made a token, as the audit names them; '' for tokens from before.
ALTER TABLE named_tokens ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
