package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"switchyard/internal/store/sqlite"
)

// eventSpan is the time over which the events of a database are spread, up to its creation.
const eventSpan = 90 * 24 * time.Hour

// copyEvents adds copies of all events, each with its own stories, with SQL: through the program's store, ten million
// would take half an hour. The database must be as fill leaves it. A copy adds the rows that the store would have
// added, in the order of their ids, so that indexes are as full as they would be.
func copyEvents(ctx context.Context, dir string, copies int) error {
	// Without a journal: an interrupted run has to start again.
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, sqlite.FileName)+
		"?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)&_pragma=cache_size(-1000000)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var events, names, stories, first int64
	err = db.QueryRowContext(ctx, `SELECT (SELECT MAX(id) FROM events), (SELECT MAX(id) FROM stories),
		(SELECT MAX(CAST(story_id AS INTEGER)) + 1 FROM stories), (SELECT MIN(timestamp_ms) FROM events)`).
		Scan(&events, &names, &stories, &first)
	if err != nil {
		return err
	}
	begin, all := time.Now().Add(-eventSpan).UnixMilli(), int64(copies+1)
	for _, statement := range squeezed {
		if _, err := db.ExecContext(ctx, statement, sql.Named("first", first), sql.Named("begin", begin),
			sql.Named("all", all)); err != nil {
			return err
		}
	}
	for n := range int64(copies) {
		n++
		for _, statement := range copied {
			_, err := db.ExecContext(ctx, statement, sql.Named("events", events), sql.Named("names", names),
				sql.Named("event", n*events), sql.Named("name", n*names), sql.Named("story", n*stories),
				sql.Named("later", n*eventSpan.Milliseconds()/all))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// squeezed makes room for the copies: it moves all existing events to the first part of the time span, and removes
// finished stories from the board.
var squeezed = []string{
	`UPDATE events SET record = json_set(record, '$.timestamp_ms', :begin + (timestamp_ms - :first) / :all),
		timestamp_ms = :begin + (timestamp_ms - :first) / :all,
		received_at_ms = :begin + (received_at_ms - :first) / :all`,
	"UPDATE stage_visits SET to_ms = from_ms + 60000 WHERE to_ms = 0",
	`UPDATE stage_visits SET to_ms = :begin + (to_ms - :first) / :all,
		blocked_ms = blocked_ms / :all, blocked_since_ms = 0, merge_failed_since_ms = 0,
		from_ms = CASE from_ms WHEN 0 THEN 0 ELSE :begin + (from_ms - :first) / :all END`,
	"UPDATE visit_counts SET open_visits = 0",
}

// Stories are numbered at the beginning of their ids and at the end of their names.
const (
	copiedID   = "(CAST(story_id AS INTEGER) + :story) || substr(story_id, instr(story_id, '_'))"
	copiedName = "rtrim(story_name, '0123456789') || (CAST(story_id AS INTEGER) + :story)"
)

// copied adds one copy. The digests of records only have to be different.
var copied = []string{
	`INSERT INTO stories (id, project, story_id, story_name, words)
		SELECT id + :name, project, ` + copiedID + `, ` + copiedName + `,
			char(10) || lower(` + copiedID + ` || char(10) || ` + copiedName + `) || char(10)
		FROM stories WHERE id <= :names`,
	`INSERT INTO events (id, project, received_at_ms, timestamp_ms, type, story, text, record)
		SELECT events.id + :event, events.project, received_at_ms + :later, timestamp_ms + :later, type, story + :name,
			text, json_set(record, '$.story_id', ` + copiedID + `, '$.story_name', ` + copiedName + `,
				'$.timestamp_ms', timestamp_ms + :later)
		FROM events JOIN stories ON stories.id = story WHERE events.id <= :events`,
	"INSERT INTO event_digests (digest) SELECT random() FROM events WHERE id <= :events",
	`INSERT INTO stage_visits SELECT story + :name, number + :later, project, stage,
		CASE from_ms WHEN 0 THEN 0 ELSE from_ms + :later END, to_ms + :later,
		next_stage, source, blocked_ms, 0, 0, 0
		FROM stage_visits WHERE story <= :names`,
	"UPDATE stream SET last_id = :event + :events",
}
