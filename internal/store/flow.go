package store

import (
	"context"

	"switchyard/internal/domain"
)

// StoryNames returns the numbers and names of those stories that are known.
func (db visits) StoryNames(
	ctx context.Context, stories []domain.StoryKey,
) (found map[domain.StoryKey]domain.NamedStory, err error) {
	found = map[domain.StoryKey]domain.NamedStory{}
	rows := domain.Map(stories, func(k domain.StoryKey) []any { return []any{k.Project, k.ID} })
	err = Each(ctx, db.engine.Read, func(row Row) error {
		var key domain.StoryKey
		var s domain.NamedStory
		err := row.Scan(&s.Number, &key.Project, &key.ID, &s.Name)
		found[key] = s
		return err
	}, db.sql.namesOfStories, jsonText(rows))
	return found, db.Translate(err)
}

// StoryOf returns the project and the id of the story of this number. It returns NotFound.
func (db visits) StoryOf(ctx context.Context, number int64) (key domain.StoryKey, err error) {
	err = db.engine.Read.QueryRowContext(ctx, "SELECT project, story_id FROM stories WHERE id = $1", number).
		Scan(&key.Project, &key.ID)
	return key, db.Translate(err)
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
