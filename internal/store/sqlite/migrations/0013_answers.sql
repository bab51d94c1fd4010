-- What was picked of a question with several choices: JSON, '' for other questions.
ALTER TABLE questions ADD COLUMN answers TEXT NOT NULL DEFAULT '';
