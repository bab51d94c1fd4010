package postgres

import (
	"context"
	"crypto/sha256"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// TopicEvents is about events that were appended.
const TopicEvents = "events"

// FeedDuty is the name of the duty to follow a project's feed.
func FeedDuty(project string) string { return "feed:" + project }

// Read is a read of a project's feed by the gateway that has this duty.
type Read struct {
	domain.FeedRead
	Epoch int64 // of the duty, when the read began
}

// Events is the merged stream of all gateways.
type Events struct{ pool *pgxpool.Pool }

// NewEvents returns the merged stream in the database of pool.
func NewEvents(pool *pgxpool.Pool) *Events { return &Events{pool} }

// Append stores reads of a gateway in their order, each one's records together with the position that it leads to, all in
// one transaction. A record whose content its project has already is dropped. A read of a feed that is no longer this
// gateway's duty is not stored: refused holds its index. Append returns the events that are new, with consecutive ids, and
// the id that was the last before them.
func (s *Events) Append(ctx context.Context, gateway string, reads []Read) (added []domain.Event, last int64, refused []int, err error) {
	fresh, err := s.unknown(ctx, reads)
	if err != nil {
		return nil, 0, nil, err
	}
	var batch pgx.Batch
	// Whoever appends holds this row until it has committed, so ids increase in the order of commits.
	batch.Queue("SELECT last_id FROM stream FOR UPDATE").QueryRow(func(row pgx.Row) error { return row.Scan(&last) })
	held := map[string]bool{}
	batch.Queue(appendStatement, appendArguments(gateway, reads, fresh)...).Query(func(rows pgx.Rows) error {
		var project string
		_, err := pgx.ForEachRow(rows, []any{&project}, func() error { held[project] = true; return nil })
		return err
	})
	batch.Queue("SELECT pg_notify($1, $2)", channel, TopicEvents)
	if err := s.pool.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, 0, nil, err
	}
	for i, read := range reads {
		if !held[read.Cursor.Project] {
			refused = append(refused, i)
		}
	}
	for _, r := range fresh {
		if held[r.Project] {
			r.ID = last + int64(len(added)) + 1
			added = append(added, r.Event)
		}
	}
	return added, last, refused, nil
}

// freshEvent is an event that is about to be stored, without its id.
type freshEvent struct {
	domain.Event
	digest []byte
}

// unknown returns the records that their projects do not have yet, in their order. What it finds stays true until they are
// stored: only the gateway whose duty a feed is stores its records.
func (s *Events) unknown(ctx context.Context, reads []Read) (fresh []freshEvent, err error) {
	type content struct {
		project string
		digest  [16]byte
	}
	seen := map[content]bool{}
	var projects []string
	var digests [][]byte
	for _, read := range reads {
		for _, record := range read.Records {
			sum := sha256.Sum256(record.JSON)
			key := content{read.Cursor.Project, [16]byte(sum[:16])}
			if seen[key] {
				continue
			}
			seen[key] = true
			fresh = append(fresh, freshEvent{
				domain.Event{Project: key.project, ReceivedAt: read.ReceivedAt, Record: record}, key.digest[:],
			})
			projects, digests = append(projects, key.project), append(digests, key.digest[:])
		}
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	rows, err := s.pool.Query(ctx, `SELECT place FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS asked (project, digest, place)
		WHERE EXISTS (SELECT FROM event_digests WHERE project = asked.project AND digest = asked.digest) ORDER BY place DESC`, projects, digests)
	if err != nil {
		return nil, err
	}
	known, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, err
	}
	drop := make(map[int]bool, len(known))
	for _, place := range known {
		drop[place-1] = true
	}
	kept := fresh[:0]
	for i, e := range fresh {
		if !drop[i] {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// appendStatement stores records and positions of those projects whose feed is the gateway's duty under the epoch that comes
// with them; an epoch of 0 needs no duty. It returns the names of these projects. $1 is the gateway, $2 and $3 are projects
// and epochs, $4 to $7 the positions, $8 to $15 the records in their order.
const appendStatement = `
WITH duty AS (
	SELECT name FROM duties WHERE gateway = $1 AND (name, epoch) IN (SELECT 'feed:' || p, e FROM unnest($2::text[], $3::bigint[]) AS asked (p, e))
	FOR SHARE
), held AS (
	SELECT DISTINCT p AS project FROM unnest($2::text[], $3::bigint[]) AS asked (p, e) WHERE e = 0 OR 'feed:' || p IN (SELECT name FROM duty)
), input AS (
	SELECT records.*, row_number() OVER (ORDER BY place) AS number
	FROM unnest($8::text[], $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::bytea[]) WITH ORDINALITY
		AS records (project, type, story_id, timestamp_ms, received_at_ms, record, folded, digest, place)
	WHERE project IN (SELECT project FROM held)
), new_texts AS (
	INSERT INTO event_texts (digest, folded) SELECT DISTINCT sha256(convert_to(folded, 'UTF8')), folded FROM input
	ON CONFLICT (digest) DO NOTHING RETURNING id, digest
), texts AS (
	SELECT id, digest FROM new_texts
	UNION ALL SELECT id, digest FROM event_texts WHERE digest IN (SELECT sha256(convert_to(folded, 'UTF8')) FROM input)
), new_digests AS (
	INSERT INTO event_digests (project, digest) SELECT project, digest FROM input
), new_events AS (
	INSERT INTO events (id, project, type, story_id, text_id, timestamp_ms, received_at_ms, record)
	SELECT last_id + number, project, type, story_id, texts.id, timestamp_ms, received_at_ms, record
	FROM stream, input JOIN texts ON texts.digest = sha256(convert_to(folded, 'UTF8'))
), counted AS (
	UPDATE stream SET last_id = last_id + (SELECT count(*) FROM input)
), moved AS (
	INSERT INTO feed_cursors (project, url, since, instance, sequence)
	SELECT DISTINCT ON (project, url) project, url, since, instance, sequence
	FROM unnest($2::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[]) WITH ORDINALITY AS positions (project, url, since, instance, sequence, place)
	WHERE project IN (SELECT project FROM held) ORDER BY project, url, place DESC
	ON CONFLICT (project, url) DO UPDATE SET since = excluded.since, instance = excluded.instance, sequence = excluded.sequence
)
SELECT project FROM held`

func appendArguments(gateway string, reads []Read, fresh []freshEvent) []any {
	var r struct {
		projects, urls, instances []string
		epochs, since, sequences  []int64
	}
	for _, read := range reads {
		c := read.Cursor
		r.projects, r.urls, r.instances = append(r.projects, c.Project), append(r.urls, c.URL), append(r.instances, c.Instance)
		r.epochs, r.since, r.sequences = append(r.epochs, read.Epoch), append(r.since, c.Since), append(r.sequences, c.Sequence)
	}
	var e struct {
		projects, types, stories, records, texts []string
		stamps, received                         []int64
		digests                                  [][]byte
	}
	for _, event := range fresh {
		e.projects, e.types = append(e.projects, event.Project), append(e.types, text(string(event.Type)))
		e.stories, e.records = append(e.stories, text(event.Details().StoryID)), append(e.records, string(event.JSON))
		e.texts = append(e.texts, searched(event.Event))
		e.stamps, e.received = append(e.stamps, event.At.UnixMilli()), append(e.received, event.ReceivedAt.UnixMilli())
		e.digests = append(e.digests, event.digest)
	}
	return []any{
		gateway, r.projects, r.epochs, r.urls, r.since, r.instances, r.sequences,
		e.projects, e.types, e.stories, e.stamps, e.received, e.records, e.texts, e.digests,
	}
}

// text is what PostgreSQL can store of a text: everything but the character NUL.
func text(s string) string { return strings.ReplaceAll(s, "\x00", "") }

// searched is what a search for parts of words looks at.
func searched(e domain.Event) string {
	return text(fold.Text(e.Project + "\n" + strings.Join(e.Texts(), "\n")))
}
