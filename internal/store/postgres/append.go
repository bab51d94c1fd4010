package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// AppendEvents stores reads in order, the records of each with its new reading position, all in one transaction. It
// drops records that their project has or had already. It refuses reads once another gateway leads: nothing of them is
// stored.
//
// It takes two round trips, whatever it stores: one locks and reads, the other writes, notifies other gateways and
// commits.
func (db *DB) AppendEvents(ctx context.Context, reads []domain.FeedRead) (appended domain.Appended, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	db.pace.begin()
	// AcquireFunc drops a connection that is still in the transaction.
	err = db.leader.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		a := appending{reads: reads, seen: db.seen.last.Load()}
		if err := c.SendBatch(ctx, a.begin()).Close(); err != nil {
			return err
		}
		a.choose()
		if err := c.SendBatch(ctx, a.write()).Close(); err != nil {
			return err
		}
		appended = a.result
		db.seen.note(a.last())
		return nil
	})
	db.pace.end(err)
	db.unblock(ctx, err)
	for _, i := range appended.Refused {
		db.refuse(reads[i].Token)
	}
	return appended, db.Appended(err)
}

type appending struct {
	reads []domain.FeedRead
	seen  int64 // the greatest event id that this gateway has seen
	// The following is read in the first round trip.
	visits  *visitRead     // of the records' stories
	held    []int64        // those of the reads' fencing tokens that are the leader's
	known   map[int64]bool // the digests of records that are stored already
	result  domain.Appended
	digests []int64 // of the new events
}

// lockStream makes a transaction the only one that appends events, so that ids increase in the order of commits.
const lockStream = "SELECT last_id FROM stream FOR UPDATE"

// begin returns the statements that lock and read what the transaction needs.
func (a *appending) begin() *pgx.Batch {
	var batch pgx.Batch
	var digests, tokens []int64
	var stories []domain.StoryKey
	for _, read := range a.reads {
		if read.Token != 0 && !slices.Contains(tokens, read.Token) {
			tokens = append(tokens, read.Token)
		}
		for _, record := range read.Records {
			digests = append(digests, store.EventDigest(read.Cursor.Project, record))
			if key, ok := domain.VisitKey(read.Cursor.Project, record); ok {
				stories = append(stories, key)
			}
		}
	}
	batch.Queue("BEGIN")
	last := lockStream
	if len(digests) == 0 { // there are only positions to store
		last = "SELECT last_id FROM stream"
	}
	batch.Queue(last).QueryRow(func(row pgx.Row) error { return row.Scan(&a.result.Last) })
	const held = "SELECT token FROM lease WHERE token = ANY ($1) FOR KEY SHARE"
	batch.Queue(held, tokens).Query(func(rows pgx.Rows) (err error) {
		a.held, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	a.visits = readVisits(&batch, stories)
	a.known = map[int64]bool{}
	batch.Queue("SELECT digest FROM event_digests WHERE digest = ANY ($1)", digests).Query(func(rows pgx.Rows) error {
		var digest int64
		_, err := pgx.ForEachRow(rows, []any{&digest}, func() error { a.known[digest] = true; return nil })
		return err
	})
	return &batch
}

// choose gives ids to the records that are new, and refuses the reads of a gateway that leads no more.
func (a *appending) choose() {
	a.result.Last = max(a.result.Last, a.seen)
	for i, read := range a.reads {
		if a.refused(read) {
			a.result.Refused = append(a.result.Refused, i)
			continue
		}
		for _, record := range read.Records {
			digest := store.EventDigest(read.Cursor.Project, record)
			if a.known[digest] {
				continue
			}
			a.known[digest] = true
			a.digests = append(a.digests, digest)
			a.result.Added = append(a.result.Added, domain.Event{
				ID: a.last() + 1, Project: read.Cursor.Project, ReceivedAt: read.ReceivedAt, Record: record,
			})
		}
	}
}

func (a *appending) refused(read domain.FeedRead) bool {
	return read.Token != 0 && !slices.Contains(a.held, read.Token)
}

func (a *appending) last() int64 { return a.result.Last + int64(len(a.result.Added)) }

func (a *appending) write() *pgx.Batch {
	var batch pgx.Batch
	if len(a.result.Added) > 0 {
		batch.Queue(insertEvents, eventColumns(a.result.Added)...)
		batch.Queue("INSERT INTO event_digests (digest) SELECT unnest($1::bigint[])", a.digests)
		batch.Queue("UPDATE stream SET last_id = $1", a.last())
		var stories []domain.StoryRef
		for _, e := range a.result.Added {
			if s, ok := store.StoryOf(e); ok {
				stories = append(stories, s)
			}
		}
		queueNames(&batch, stories)
		book := a.visits.book()
		book.Add(a.result.Added...)
		a.result.Visits = writeVisits(&batch, book)
		batch.Queue(notifyStatement, channel, domain.TopicEvents)
	}
	batch.Queue(moveCursors, a.cursorColumns()...)
	batch.Queue("COMMIT")
	return &batch
}

const insertEvents = `INSERT INTO events (id, project, received_at_ms, record, timestamp_ms, type, story_id, story_name,
		from_stage, to_stage, words)
	SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::text[],
		$8::text[], $9::text[], $10::text[], $11::text[])`

func eventColumns(events []domain.Event) []any {
	var ids, received, stamps []int64
	var texts [8][]string
	for _, e := range events {
		ids, received = append(ids, e.ID), append(received, e.ReceivedAt.UnixMilli())
		stamps = append(stamps, e.At.UnixMilli())
		for i, text := range append([]string{Text(e.Project), string(e.JSON)}, EventTexts(e.Project, e.Record)...) {
			texts[i] = append(texts[i], text)
		}
	}
	return []any{ids, texts[0], received, texts[1], stamps, texts[2], texts[3], texts[4], texts[5], texts[6], texts[7]}
}

// EventTexts returns what the columns of a record hold from its type on.
func EventTexts(project string, r domain.Record) []string {
	d := r.Details()
	return []string{
		Key(string(r.Type)), Key(d.StoryID), Text(d.StoryName), Text(d.FromStage), Text(d.ToStage),
		Text(store.EventWords(project, r)),
	}
}

const nameStories = `INSERT INTO stories (project, story_id, story_name, words)
	SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
	ON CONFLICT (project, story_id) DO UPDATE SET story_name = excluded.story_name, words = excluded.words
		WHERE stories.story_name <> excluded.story_name`

// queueNames queues a statement that stores the newest names of stories. The last one counts.
func queueNames(batch *pgx.Batch, stories []domain.StoryRef) {
	named := map[[2]string]bool{}
	var projects, ids, names, words []string
	for _, s := range slices.Backward(stories) {
		project, id := Text(s.Project), Key(s.ID)
		if key := [2]string{project, id}; !named[key] {
			named[key] = true
			projects, ids, names = append(projects, project), append(ids, id), append(names, Text(s.Name))
			words = append(words, Text(store.StoryWords(s.ID, s.Name)))
		}
	}
	// In the order in which they came: a new story has a greater id than an older one.
	for _, column := range [][]string{projects, ids, names, words} {
		slices.Reverse(column)
	}
	if len(ids) > 0 {
		batch.Queue(nameStories, projects, ids, names, words)
	}
}

const moveCursors = `INSERT INTO feed_cursors (project, url, since, instance, sequence)
	SELECT DISTINCT ON (project, url) project, url, since, instance, sequence
	FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[]) WITH ORDINALITY
		AS positions (project, url, since, instance, sequence, place) ORDER BY project, url, place DESC
	ON CONFLICT (project, md5(url)) DO UPDATE SET since = excluded.since, instance = excluded.instance,
		sequence = excluded.sequence`

func (a *appending) cursorColumns() []any {
	var since, sequences []int64
	var names, urls, instances []string
	for _, read := range a.reads {
		if a.refused(read) {
			continue
		}
		c := read.Cursor
		names, urls = append(names, Text(c.Project)), append(urls, Text(c.URL))
		instances = append(instances, Text(c.Instance))
		since, sequences = append(since, c.Since), append(sequences, c.Sequence)
	}
	return []any{names, urls, since, instances, sequences}
}
