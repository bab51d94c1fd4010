package store

import (
	"context"
	"database/sql"
	"slices"

	"switchyard/internal/domain"
)

// FlowVisits calls yield with the visits of a project, or of all for "", those of each story in order. All of them take
// as long as half of them project by project.
func (db visits) FlowVisits(ctx context.Context, project string, yield func(domain.FlowVisit)) error {
	known := names{}
	condition, args := "", []any{}
	if project != "" {
		condition, args = "WHERE project = $1", []any{project}
	}
	var of, stage, next, source sql.RawBytes
	return db.Translate(Each(ctx, db.engine.Read, func(row Row) error {
		var v domain.FlowVisit
		if err := row.Scan(&of, &v.Story, &stage, &next, &source, &v.From, &v.To, &v.StoryID); err != nil {
			return err
		}
		v.Project, v.Stage, v.Next = known.name(of), known.name(stage), known.name(next)
		v.Git = string(source) == string(domain.FromGit)
		yield(v)
		return nil
	}, `SELECT project, story, stage, next_stage, source, from_ms, to_ms,
		CASE WHEN to_ms = 0 THEN (SELECT story_id FROM stories WHERE id = story) ELSE '' END
		FROM stage_visits `+condition+" ORDER BY story, number", args...))
}

func (db visits) FlowStories(ctx context.Context, numbers []int64) (map[int64]domain.StoryRef, error) {
	found := map[int64]domain.StoryRef{}
	for some := range slices.Chunk(numbers, 1000) {
		err := Each(ctx, db.engine.Read, func(row Row) error {
			var number int64
			var ref domain.StoryRef
			err := row.Scan(&number, &ref.Project, &ref.ID, &ref.Name)
			found[number] = ref
			return err
		}, "SELECT id, project, story_id, story_name FROM stories WHERE id IN ("+List(some)+")")
		if err != nil {
			return nil, db.Translate(err)
		}
	}
	return found, nil
}

// names holds each of a few names once that are read again and again, those of projects and stages.
type names map[string]string

func (n names) name(raw []byte) string {
	name, known := n[string(raw)]
	if !known {
		name = string(raw)
		n[name] = name
	}
	return name
}
