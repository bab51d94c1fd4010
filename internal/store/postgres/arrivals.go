package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/domain"
)

// arrivalLife is how long arrivals are kept for all gateways to read once they have been saved, and unsavedLife how long before that.
const arrivalLife, unsavedLife = time.Minute, 24 * time.Hour

// ShareArrivals shares arrivals with all gateways, including this one.
func (db *DB) ShareArrivals(ctx context.Context, arrivals []domain.Arrival) error {
	var projects, stories, names, stages []string
	var at []int64
	for _, a := range arrivals {
		projects, stories, names = append(projects, Text(a.Project)), append(stories, Text(a.StoryID)), append(names, Text(a.StoryName))
		stages, at = append(stages, Text(a.Stage)), append(at, a.At.UnixMilli())
	}
	var batch pgx.Batch
	batch.Queue("DELETE FROM arrivals WHERE saved AND told_at < clock_timestamp() - $1::interval OR told_at < clock_timestamp() - $2::interval", arrivalLife, unsavedLife)
	batch.Queue(`INSERT INTO arrivals (project, story_id, story_name, stage, at_ms)
		SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])`, projects, stories, names, stages, at)
	batch.Queue(notifyStatement, channel, domain.TopicArrivals)
	return db.Wrote(db.appends.SendBatch(ctx, &batch).Close())
}

// ArrivalsSince returns the arrivals since a position, all that are kept for 0, and the next position. That is before any
// transaction in progress, so some arrivals may be returned again.
func (db *DB) ArrivalsSince(ctx context.Context, position int64) (news domain.ArrivalNews, err error) {
	rows, err := db.tables.QueryContext(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, id, project, story_id, story_name, stage, at_ms, saved
		FROM (SELECT) AS always LEFT JOIN arrivals ON told_by >= $1 ORDER BY id`, position)
	if err != nil {
		return news, db.Translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, at *int64
		var project, story, name, stage *string
		var saved *bool
		if err := rows.Scan(&news.Position, &id, &project, &story, &name, &stage, &at, &saved); err != nil {
			return news, db.Translate(err)
		}
		if id == nil { // there are no new ones
			break
		}
		a := domain.Arrival{Project: *project, StoryID: *story, StoryName: *name, Stage: *stage, At: time.UnixMilli(*at)}
		news.Arrivals = append(news.Arrivals, domain.SharedArrival{Arrival: a, ID: *id, Saved: *saved})
	}
	return news, db.Translate(rows.Err())
}
