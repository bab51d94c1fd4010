-- The gateway that runs the bot is asked for other messages than tests, too.
ALTER TABLE bot_tests ADD COLUMN message TEXT NOT NULL DEFAULT ''; -- JSON, '' for a test message
