package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"switchyard/internal/domain"
)

// Statement is a statement of a transaction. Each, unless nil, is called with each row of its result.
type Statement struct {
	SQL  string
	Args []any
	Each func(Row) error
}

// AppendEvents stores reads in order, each read's records with its new reading position, all in one transaction. It
// drops records that their project has or had already, and refuses the reads of a gateway that no longer leads: nothing
// of them is stored.
func (db events) AppendEvents(ctx context.Context, reads []domain.FeedRead) (domain.AppendResult, error) {
	a := &appendBatch{sql: db.sql, reads: reads, seen: db.seen.Load(), known: map[int64]bool{}}
	if err := db.Appended(db.engine.Transact(ctx, a.read(), a.write)); err != nil {
		return domain.AppendResult{}, err
	}
	db.noteEventID(a.last())
	for _, i := range a.result.Refused {
		db.engine.Refused(reads[i].Token)
	}
	return a.result, nil
}

// LastEventID returns the greatest id ever assigned, 0 before the first.
func (db events) LastEventID(ctx context.Context) (int64, error) {
	return selectOne(ctx, db.conn, ScanOne[int64], lastID)
}

type appendBatch struct {
	sql   *changeSQL
	reads []domain.FeedRead
	seen  int64 // the greatest event id that this gateway has seen
	// The following is read first.
	held   []int64        // those of the reads' fencing tokens that are the leader's
	known  map[int64]bool // the digests of records that are already stored
	visits visitRead      // of the records' stories
	result domain.AppendResult
	// reviews are stored with the records.
	reviews []domain.ReviewRecord
	rows    struct{ events, digests, texts [][]any }
}

// read returns the statements that lock and read what the transaction needs.
func (a *appendBatch) read() []Statement {
	var digests, tokens [][]any
	var keys []domain.StoryKey
	for _, read := range a.reads {
		if read.Token != 0 {
			tokens = append(tokens, []any{read.Token})
		}
		for _, record := range read.Records {
			digests = append(digests, []any{EventDigest(read.Cursor.Project, record)})
			if key, ok := domain.VisitKey(read.Cursor.Project, record); ok {
				keys = append(keys, key)
			}
		}
	}
	last := a.sql.lock
	if len(digests) == 0 { // there are only positions to store
		last = lastID
	}
	statements := []Statement{{SQL: last, Each: func(row Row) error { return row.Scan(&a.result.Last) }}}
	if len(tokens) > 0 {
		statements = append(statements, Statement{a.sql.held, []any{jsonText(tokens)}, func(row Row) error {
			token, err := ScanOne[int64](row)
			a.held = append(a.held, token)
			return err
		}})
	}
	if len(digests) > 0 {
		statements = append(statements, Statement{a.sql.known, []any{jsonText(digests)}, func(row Row) error {
			digest, err := ScanOne[int64](row)
			a.known[digest] = true
			return err
		}})
	}
	return append(statements, a.visits.statements(a.sql, a.sql.newest, keys)...)
}

func (a *appendBatch) last() int64 { return a.result.Last + int64(len(a.result.Added)) }

func (a *appendBatch) write() (statements []Statement, about topics, err error) {
	a.result.Last = max(a.result.Last, a.seen)
	var positions [][]any
	for i, read := range a.reads {
		if read.Token != 0 && !slices.Contains(a.held, read.Token) {
			a.result.Refused = append(a.result.Refused, i)
			continue
		}
		for _, record := range read.Records {
			if digest := EventDigest(read.Cursor.Project, record); !a.known[digest] {
				a.known[digest] = true
				a.rows.digests = append(a.rows.digests, []any{digest})
				a.add(domain.Event{
					ID: a.last() + 1, Project: read.Cursor.Project, ReceivedAt: read.ReceivedAt, Record: record,
				})
			}
		}
		if read.Review != nil {
			a.reviews = append(a.reviews, *read.Review)
			continue
		}
		c := read.Cursor
		positions = slices.DeleteFunc(positions, func(p []any) bool { return p[0] == c.Project && p[1] == c.URL })
		positions = append(positions, []any{c.Project, c.URL, c.Since, c.Instance, c.Sequence})
	}
	queue := func(statement string, args ...any) {
		statements = append(statements, Statement{SQL: statement, Args: args})
	}
	if len(a.result.Added) > 0 {
		about = topics{domain.TopicEvents}
		var stories []domain.StoryRef
		for _, e := range a.result.Added {
			if s, ok := StoryOf(e); ok {
				stories = append(stories, s)
			}
		}
		queue(a.sql.addTexts, jsonText(a.rows.texts))
		queue(a.sql.nameStories, jsonText(storyRows(stories)))
		queue(a.sql.addEvents, jsonText(a.rows.events))
		queue(a.sql.addDigests, jsonText(a.rows.digests))
		queue("UPDATE stream SET last_id = $1", a.last())
		book := a.visits.book()
		book.Add(a.result.Added...)
		var saved []Statement
		if a.result.Visits, saved = saveVisits(a.sql, book); len(saved) > 0 {
			statements, about = append(statements, saved...), append(about, domain.TopicVisits)
		}
	}
	for _, r := range a.reviews {
		statements = append(statements, reviewed(r)...)
	}
	if len(positions) > 0 {
		queue(a.sql.moveCursors, jsonText(positions))
	}
	return statements, about, nil
}

func (a *appendBatch) add(e domain.Event) {
	a.result.Added = append(a.result.Added, e)
	kind, words := Key(string(e.Type)), eventWords(e.Record)
	digest := digestOf(kind + "\x00" + words)
	a.rows.texts = append(a.rows.texts, []any{digest, kind, words})
	story, _ := StoryOf(e)
	a.rows.events = append(a.rows.events, []any{
		e.ID, e.Project, e.ReceivedAt.UnixMilli(), e.At.UnixMilli(), kind, Key(story.ID), digest, string(e.JSON),
	})
}

// EventDigest identifies a record among those of all projects.
func EventDigest(project string, r domain.Record) int64 {
	return digestOf(project + "\x00" + string(r.JSON))
}

// digestOf returns the first 8 bytes of the SHA-256 of a text.
func digestOf(text string) int64 {
	sum := sha256.Sum256([]byte(text))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

func StoryOf(e domain.Event) (s domain.StoryRef, ok bool) {
	if !e.Type.Kind().OfStory {
		return s, false
	}
	d := e.Details()
	return domain.StoryRef{Project: e.Project, ID: d.StoryID, Name: d.StoryName}, d.StoryID != ""
}

// storyRows returns the rows for naming stories, each once: the last name counts, but all of them can be searched for.
// A new story comes after an older one.
func storyRows(stories []domain.StoryRef) (rows [][]any) {
	at := map[domain.StoryKey]int{}
	for _, s := range stories {
		key, words := domain.StoryKey{Project: s.Project, ID: Key(s.ID)}, storyWords(s.ID, s.Name)
		i, found := at[key]
		switch {
		case !found:
			at[key], rows = len(rows), append(rows, []any{s.Project, key.ID, s.Name, words})
		case rows[i][2] != s.Name:
			rows[i][2], rows[i][3] = s.Name, domain.CutBytes(rows[i][3].(string)+words, maxWords)
		}
	}
	return rows
}
