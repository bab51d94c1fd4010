package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// AppendEvents stores reads in order, the records of each with its new reading position, all in one transaction. It drops records
// that their project has or had already. It refuses reads once another gateway leads: nothing of them is stored.
func (db *DB) AppendEvents(ctx context.Context, reads []domain.FeedRead) (appended domain.Appended, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	db.pace.begin()
	appended, err = db.appendEvents(ctx, reads)
	db.pace.end(err)
	db.unblock(ctx, err)
	for _, i := range appended.Refused {
		db.refuse(reads[i].Token)
	}
	return appended, db.Appended(err)
}

func (db *DB) appendEvents(ctx context.Context, reads []domain.FeedRead) (appended domain.Appended, err error) {
	var names []string
	for _, read := range reads {
		names = append(names, read.Cursor.Project)
	}
	projects, err := db.projectIDs(ctx, names)
	if err != nil {
		return appended, err
	}
	fresh, err := db.unknown(ctx, reads, projects)
	if err != nil {
		return appended, err
	}
	rows, err := db.eventRows(ctx, fresh)
	if err != nil {
		return appended, err
	}
	var batch pgx.Batch
	seen := db.seen.last.Load()
	last := "SELECT last_id FROM stream"
	if len(fresh) > 0 {
		last = lockStream // so ids increase in the order of commits
	}
	batch.Queue(last).QueryRow(func(row pgx.Row) error { return row.Scan(&appended.Last) })
	rows.texts.queue(&batch)
	held := map[int64]bool{}
	batch.Queue(appendStatement, slices.Concat(cursorArguments(reads, projects), rows.arguments(), []any{seen})...).Query(func(rows pgx.Rows) error {
		var project int64
		_, err := pgx.ForEachRow(rows, []any{&project}, func() error { held[project] = true; return nil })
		return err
	})
	if len(fresh) > 0 {
		batch.Queue(notifyStatement, channel, domain.TopicEvents)
	}
	if err := db.leader.SendBatch(ctx, &batch).Close(); err != nil {
		return domain.Appended{}, err
	}
	if len(fresh) > 0 {
		appended.Last = max(appended.Last, seen)
	}
	for i, read := range reads {
		if !held[projects[read.Cursor.Project]] {
			appended.Refused = append(appended.Refused, i)
		}
	}
	for _, e := range fresh {
		if held[e.project] {
			e.ID = appended.Last + int64(len(appended.Added)) + 1
			appended.Added = append(appended.Added, e.Event)
		}
	}
	db.seen.note(appended.Last + int64(len(appended.Added)))
	return appended, nil
}

// freshEvent is an event to be stored, without its id.
type freshEvent struct {
	domain.Event
	project int64
	digest  int64
}

// unknown returns, in order, the records that their projects do not have yet. No other gateway can store them in the meantime, since
// only the one that follows a feed stores its records.
func (db *DB) unknown(ctx context.Context, reads []domain.FeedRead, projectIDs map[string]int64) (fresh []freshEvent, err error) {
	type content struct{ project, digest int64 }
	seen := map[content]bool{}
	var projects, digests []int64
	for _, read := range reads {
		project := projectIDs[read.Cursor.Project]
		for _, record := range read.Records {
			c := content{project, store.Digest(record.JSON)}
			if seen[c] {
				continue
			}
			seen[c] = true
			fresh = append(fresh, freshEvent{domain.Event{Project: read.Cursor.Project, ReceivedAt: read.ReceivedAt, Record: record}, project, c.digest})
			projects, digests = append(projects, project), append(digests, c.digest)
		}
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	rows, err := db.leader.Query(ctx, `SELECT place FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS asked (project_id, digest, place)
		WHERE EXISTS (SELECT FROM event_digests AS d WHERE d.project_id = asked.project_id AND d.digest = asked.digest)`, projects, digests)
	if err != nil {
		return nil, err
	}
	known, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, err
	}
	drop := make(map[content]bool, len(known))
	for _, place := range known {
		drop[content{projects[place-1], digests[place-1]}] = true
	}
	return slices.DeleteFunc(fresh, func(e freshEvent) bool { return drop[content{e.project, e.digest}] }), nil
}

// appendStatement stores the records and positions of those projects whose token is still that of the leader; token 0 needs no
// leader. It returns these projects.
const appendStatement = `
WITH asked AS (
	SELECT DISTINCT project_id, token FROM unnest($1::bigint[], $3::bigint[]) AS asked (project_id, token)
), leader AS (
	SELECT token FROM lease WHERE token = ANY ($3) FOR KEY SHARE
), held AS (
	SELECT project_id FROM asked WHERE token = 0 OR token IN (SELECT token FROM leader)
), input AS (
	SELECT records.*, row_number() OVER (ORDER BY place) AS number
	FROM unnest($8::bigint[], $9::bigint[], $10::text[], $11::bigint[], $12::boolean[], $13::bigint[], $14::bigint[], $15::text[], $16::bigint[]) WITH ORDINALITY
		AS records (project_id, kind_id, story_id, text_digest, has_text, timestamp_ms, received_at_ms, record, digest, place)
	WHERE project_id IN (SELECT project_id FROM held)
), new_digests AS (
	INSERT INTO event_digests (project_id, digest) SELECT project_id, digest FROM input
), new_events AS (
	INSERT INTO events (id, project_id, kind_id, text_id, timestamp_ms, received_at_ms, record)
	SELECT GREATEST(last_id, $20) + number, input.project_id, kind_id, COALESCE(t.id, 0), timestamp_ms, received_at_ms, record
	FROM stream, input LEFT JOIN event_texts AS t ON has_text AND t.project_id = input.project_id AND t.story_id = input.story_id AND t.digest = text_digest
), counted AS (
	UPDATE stream SET last_id = GREATEST(last_id, $20) + (SELECT count(*) FROM input) WHERE EXISTS (SELECT FROM input)
), named AS (
	INSERT INTO stories (project_id, story_id, text_id)
	SELECT project_id, story_id, t.id FROM unnest($17::bigint[], $18::text[], $19::bigint[]) AS story (project_id, story_id, digest)
	JOIN event_texts AS t USING (project_id, story_id, digest) WHERE project_id IN (SELECT project_id FROM held)
	ON CONFLICT (project_id, story_id) DO UPDATE SET text_id = excluded.text_id WHERE stories.text_id <> excluded.text_id
), moved AS (
	INSERT INTO feed_cursors (project, url, since, instance, sequence)
	SELECT DISTINCT ON (project, url) project, url, since, instance, sequence
	FROM unnest($1::bigint[], $2::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[]) WITH ORDINALITY
		AS positions (project_id, project, url, since, instance, sequence, place)
	WHERE project_id IN (SELECT project_id FROM held) ORDER BY project, url, place DESC
	ON CONFLICT (project, md5(url)) DO UPDATE SET since = excluded.since, instance = excluded.instance, sequence = excluded.sequence
)
SELECT project_id FROM held`

// cursorArguments are $1 to $7 of appendStatement.
func cursorArguments(reads []domain.FeedRead, ids map[string]int64) []any {
	var projects, tokens, since, sequences []int64
	var names, urls, instances []string
	for _, read := range reads {
		c := read.Cursor
		projects, tokens = append(projects, ids[c.Project]), append(tokens, read.Token)
		names, urls, instances = append(names, Text(c.Project)), append(urls, Text(c.URL)), append(instances, Text(c.Instance))
		since, sequences = append(since, c.Since), append(sequences, c.Sequence)
	}
	return []any{projects, names, tokens, urls, since, instances, sequences}
}
