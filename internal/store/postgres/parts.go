package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/fold"
	"switchyard/internal/store"
)

// projectIDs returns the ids of projects by their names, adding missing ones.
func (db *DB) projectIDs(ctx context.Context, names []string) (map[string]int64, error) {
	return db.projects.get(names, func(names []string) (map[string]int64, error) {
		var folded []string
		for _, name := range names {
			folded = append(folded, fold.Text(name))
		}
		rows, err := db.pool.Query(ctx, `WITH added AS (
				INSERT INTO event_projects (name, folded) SELECT name, folded FROM unnest($1::text[], $2::text[]) AS asked (name, folded)
				WHERE NOT EXISTS (SELECT FROM event_projects WHERE event_projects.name = asked.name)
				ON CONFLICT (name) DO NOTHING RETURNING name, id
			) SELECT name, id FROM added UNION ALL SELECT name, id FROM event_projects WHERE name = ANY ($1)`, names, folded)
		if err != nil {
			return nil, err
		}
		found := map[string]int64{}
		var name string
		var id int64
		_, err = pgx.ForEachRow(rows, []any{&name, &id}, func() error { found[name] = id; return nil })
		return found, err
	})
}

// kindIDs returns the ids of kinds, which are given with a project that has them. It adds new ones unless the project, or all
// together, would have too many.
func (db *DB) kindIDs(ctx context.Context, kinds map[store.EventKind]int64) (map[store.EventKind]int64, error) {
	return db.kinds.get(slices.Collect(maps.Keys(kinds)), func(missing []store.EventKind) (map[store.EventKind]int64, error) {
		var types, from, to, folded []string
		var projects []int64
		for _, k := range missing {
			types, from, to = append(types, string(k.Type)), append(from, k.From), append(to, k.To)
			folded = append(folded, k.Folded())
			if project := kinds[k]; k.Common() {
				projects = append(projects, 0)
			} else {
				projects = append(projects, project)
			}
		}
		rows, err := db.pool.Query(ctx, `WITH asked AS (
				SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS asked (type, from_stage, to_stage, folded, project_id)
			), missing AS (
				SELECT *, row_number() OVER (PARTITION BY project_id) AS its, row_number() OVER () AS number FROM asked WHERE NOT EXISTS (
					SELECT FROM event_kinds AS k WHERE k.type = asked.type AND k.from_stage = asked.from_stage AND k.to_stage = asked.to_stage)
			), added AS (
				INSERT INTO event_kinds (type, from_stage, to_stage, folded, project_id) SELECT type, from_stage, to_stage, folded, project_id FROM missing
				WHERE project_id = 0 OR number + (SELECT count(*) FROM event_kinds) <= $6
					AND its + (SELECT count(*) FROM event_kinds AS k WHERE k.project_id = missing.project_id) <= $7
				ON CONFLICT DO NOTHING RETURNING type, from_stage, to_stage, id
			) SELECT type, from_stage, to_stage, id FROM added UNION ALL SELECT k.type, k.from_stage, k.to_stage, k.id FROM event_kinds AS k
				JOIN asked ON k.type = asked.type AND k.from_stage = asked.from_stage AND k.to_stage = asked.to_stage`,
			types, from, to, folded, projects, store.MaxKinds, store.MaxKindsOfEach)
		if err != nil {
			return nil, err
		}
		found := map[store.EventKind]int64{}
		var k store.EventKind
		var id int64
		_, err = pgx.ForEachRow(rows, []any{&k.Type, &k.From, &k.To, &id}, func() error { found[k] = id; return nil })
		return found, err
	})
}

// textKey identifies a text.
type textKey struct {
	project int64
	story   string
	digest  int64
}

// texts are the distinct texts of events, some of which may be new.
type texts struct {
	known   map[textKey]bool
	project []int64
	story   []string
	name    []string
	more    []string
	digest  []int64
	folded  []string
}

// add returns the key of a text.
func (t *texts) add(project int64, part store.EventText) textKey {
	part.StoryID, part.StoryName, part.More = Key(part.StoryID), Text(part.StoryName), Text(part.More)
	k := textKey{project, part.StoryID, part.Digest()}
	if t.known[k] {
		return k
	}
	if t.known == nil {
		t.known = map[textKey]bool{}
	}
	t.known[k] = true
	t.project, t.story, t.digest = append(t.project, project), append(t.story, part.StoryID), append(t.digest, k.digest)
	t.name, t.more = append(t.name, part.StoryName), append(t.more, part.More)
	t.folded = append(t.folded, part.Folded())
	return k
}

// lockStream makes a transaction the only one that appends events or adds or removes texts.
const lockStream = "SELECT last_id FROM stream FOR UPDATE"

// queue queues the statement that stores new texts. The transaction must hold the stream's lock.
func (t *texts) queue(batch *pgx.Batch) {
	if len(t.project) == 0 {
		return
	}
	batch.Queue(`INSERT INTO event_texts (project_id, story_id, story_name, more, digest, folded)
		SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[]) AS part (project_id, story_id, story_name, more, digest, folded)
		WHERE NOT EXISTS (SELECT FROM event_texts AS t WHERE t.project_id = part.project_id AND t.story_id = part.story_id AND t.digest = part.digest)`,
		t.project, t.story, t.name, t.more, t.digest, t.folded)
}
