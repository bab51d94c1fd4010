package postgres

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// maxPage is the size of the records after which Page returns no more of them, in bytes.
const maxPage = 4 << 20

// maxTexts is how many texts are looked up in the index of parts of words. A text that more of them hold is common enough to
// be found by reading events.
const maxTexts = 2000

// LastID returns the greatest id that was ever given out, 0 before the first.
func (s *Events) LastID(ctx context.Context) (id int64, err error) {
	err = s.pool.QueryRow(ctx, "SELECT last_id FROM stream").Scan(&id)
	return id, err
}

// Page returns the first q.Limit events that q selects: by increasing id, or when q.Backward by decreasing id. Of huge ones
// it returns fewer, at least one.
func (s *Events) Page(ctx context.Context, q domain.EventQuery) (page domain.EventPage, err error) {
	conditions, args := []string{"id > $1", "id < $2"}, []any{q.After, int64(math.MaxInt64)}
	order := "id"
	if q.Backward {
		args[0], order = int64(0), "id DESC"
		if q.Before != 0 {
			args[1] = q.Before
		}
	}
	where := func(condition string, arg any) {
		args = append(args, arg)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if q.Project != "" {
		where("project = $%d", q.Project)
	}
	if q.Type != "" {
		where("type = $%d", text(string(q.Type)))
	}
	if q.Text != "" {
		pattern := "%" + likeEscaper.Replace(text(fold.Text(q.Text))) + "%"
		texts, err := s.texts(ctx, pattern)
		if err != nil {
			return page, err
		}
		if len(texts) <= maxTexts {
			where("text_id = ANY($%d)", texts)
		} else {
			where("(SELECT folded FROM event_texts WHERE event_texts.id = text_id) LIKE $%d", pattern)
		}
	}
	args = append(args, q.Limit+1)
	rows, err := s.pool.Query(ctx, fmt.Sprintf("SELECT id, project, type, timestamp_ms, received_at_ms, record FROM events WHERE %s ORDER BY %s LIMIT $%d",
		strings.Join(conditions, " AND "), order, len(args)), args...)
	if err != nil {
		return page, err
	}
	defer rows.Close()
	enough := maxPage
	if q.Bytes > 0 {
		enough = min(enough, q.Bytes)
	}
	for size := 0; rows.Next(); {
		if len(page.Events) == q.Limit || size >= enough {
			page.More = true
			break
		}
		e, err := scanEvent(rows)
		if err != nil {
			return domain.EventPage{}, err
		}
		page.Events = append(page.Events, e)
		size += len(e.JSON)
	}
	rows.Close()
	return page, rows.Err()
}

// texts returns texts like pattern, one more than maxTexts when there are more.
func (s *Events) texts(ctx context.Context, pattern string) ([]int64, error) {
	rows, err := s.pool.Query(ctx, "SELECT id FROM event_texts WHERE folded LIKE $1 LIMIT $2", pattern, maxTexts+1)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// OfStory returns the newest limit events of a story, the newest first.
func (s *Events) OfStory(ctx context.Context, project, storyID string, limit int) ([]domain.Event, error) {
	rows, err := s.pool.Query(ctx, `SELECT id, project, type, timestamp_ms, received_at_ms, record FROM events
		WHERE project = $1 AND story_id = $2 AND story_id <> '' ORDER BY id DESC LIMIT $3`, project, text(storyID), limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (domain.Event, error) { return scanEvent(row) })
}

// Cursors returns the reading positions of every URL that the project ever had, in no particular order.
func (s *Events) Cursors(ctx context.Context, project string) ([]domain.FeedCursor, error) {
	rows, err := s.pool.Query(ctx, "SELECT project, url, since, instance, sequence FROM feed_cursors WHERE project = $1", project)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c domain.FeedCursor, err error) {
		err = row.Scan(&c.Project, &c.URL, &c.Since, &c.Instance, &c.Sequence)
		return c, err
	})
}

func scanEvent(row pgx.Row) (e domain.Event, err error) {
	var at, received int64
	err = row.Scan(&e.ID, &e.Project, (*string)(&e.Type), &at, &received, (*[]byte)(&e.JSON))
	e.At, e.ReceivedAt = time.UnixMilli(at), time.UnixMilli(received)
	return e, err
}
