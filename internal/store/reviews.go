package store

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

const reviewColumns = "project, story_id, verdict, head, note, by_whom, via, at_ms, taken_ms"

// Review returns the last verdict on a story. It returns NotFound without one.
func (db reviews) Review(ctx context.Context, project, id string) (domain.Review, error) {
	return selectOne(ctx, db.conn, func(row Row) (r domain.Review, err error) {
		err = row.Scan(&r.Project, &r.StoryID, &r.Verdict, &r.Head, &r.Note, &r.By, &r.Via, (*Milli)(&r.At),
			(*Milli)(&r.TakenAt))
		return r, err
	}, "SELECT "+reviewColumns+" FROM reviews WHERE project = $1 AND story_id = $2", project, Key(id))
}

// TakeReview records when an agent got a verdict. It returns NotFound if one has already got it, or there is a newer
// verdict.
func (db reviews) TakeReview(ctx context.Context, r domain.Review, now time.Time) error {
	return db.changeOne(ctx, nil, nil, `UPDATE reviews SET taken_ms = $1
		WHERE project = $2 AND story_id = $3 AND at_ms = $4 AND taken_ms = 0`,
		now.UnixMilli(), r.Project, Key(r.StoryID), ToMilli(r.At))
}

// reviewed returns the statements that store a review in place of the last one, with the changes made with it.
func reviewed(of domain.ReviewRecord) (statements []Statement) {
	queue := func(statement string, args ...any) {
		statements = append(statements, Statement{SQL: statement, Args: args})
	}
	r, e := of.Review, of.Entry
	queue("INSERT INTO reviews ("+reviewColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)
		ON CONFLICT (project, story_id) DO UPDATE SET verdict = excluded.verdict, head = excluded.head,
			note = excluded.note, by_whom = excluded.by_whom, via = excluded.via, at_ms = excluded.at_ms, taken_ms = 0`,
		r.Project, Key(r.StoryID), string(r.Verdict), Text(r.Head), Text(r.Note), Text(r.By), string(r.Via), ToMilli(r.At))
	queue(insertAudit, auditArgs(e, "")...)
	for _, c := range of.Changes {
		queue(addStoryChange, storyChangeArgs(c)...)
	}
	return statements
}
