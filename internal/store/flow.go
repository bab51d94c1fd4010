package store

import (
	"context"
	"database/sql"
	"slices"

	"switchyard/internal/domain"
)

// FlowVisits calls yield with the visits of a project, those of each story in order.
func (db visits) FlowVisits(ctx context.Context, project string, yield func(domain.FlowVisit)) error {
	names := map[string]string{} // there are few stages
	intern := func(raw []byte) string {
		name, known := names[string(raw)]
		if !known {
			name = string(raw)
			names[name] = name
		}
		return name
	}
	var stage, next, source sql.RawBytes
	rows, err := db.engine.Read.QueryContext(ctx, `SELECT story, stage, next_stage, source, from_ms, to_ms,
		CASE WHEN to_ms = 0 THEN (SELECT story_id FROM stories WHERE id = story) ELSE '' END
		FROM stage_visits WHERE project = $1 ORDER BY story, number`, project)
	if err != nil {
		return db.Translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var v domain.FlowVisit
		if err := rows.Scan(&v.Story, &stage, &next, &source, &v.From, &v.To, &v.StoryID); err != nil {
			return db.Translate(err)
		}
		v.Stage, v.Next, v.Git = intern(stage), intern(next), string(source) == string(domain.FromGit)
		yield(v)
	}
	return db.Translate(rows.Err())
}

// FlowStories returns the ids and names of stories by their numbers in the store.
func (db visits) FlowStories(ctx context.Context, numbers []int64) (map[int64]domain.StoryRef, error) {
	found := map[int64]domain.StoryRef{}
	type row struct {
		number int64
		ref    domain.StoryRef
	}
	for some := range slices.Chunk(numbers, 1000) {
		all, err := selectAll(ctx, db.conn, func(r Row) (s row, err error) {
			err = r.Scan(&s.number, &s.ref.Project, &s.ref.ID, &s.ref.Name)
			return s, err
		}, "SELECT id, project, story_id, story_name FROM stories WHERE id IN ("+List(some)+")")
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			found[s.number] = s.ref
		}
	}
	return found, nil
}
