package sqlite

import (
	"switchyard/internal/domain"
	"switchyard/internal/fold"
	"switchyard/internal/store"
)

func (w writing) projectID(name string) (int64, error) {
	if id, ok := w.projects[name]; ok {
		return id, nil
	}
	id, err := w.id(w.project, name)
	if store.IsMissing(err) {
		id, err = w.id(w.addProject, name, fold.Text(name))
	}
	if err == nil {
		w.projects[name] = id
	}
	return id, err
}

// kindID returns 0 for a new kind if the project, or all together, have too many.
func (w writing) kindID(project int64, k store.EventKind) (int64, error) {
	if id, ok := w.kinds[k]; ok {
		return id, nil
	}
	id, err := w.id(w.kind, k.Type, k.From, k.To)
	if store.IsMissing(err) {
		if k.Common() {
			project = 0
		} else if full, err := w.hasAllKinds(project); full || err != nil {
			return 0, err
		}
		id, err = w.id(w.addKind, k.Type, k.From, k.To, k.Folded(), project)
	}
	if err == nil {
		w.kinds[k] = id
	}
	return id, err
}

// hasAllKinds reports whether a project must not add another kind.
func (w writing) hasAllKinds(project int64) (bool, error) {
	if w.full[project] {
		return true, nil
	}
	var all, its int
	err := w.tx.QueryRowContext(w.ctx, "SELECT COUNT(*), COALESCE(SUM(project_id = $1), 0) FROM event_kinds", project).Scan(&all, &its)
	if err == nil && (all >= store.MaxKinds || its >= store.MaxKindsOfEach) {
		w.full[project] = true
	}
	return w.full[project], err
}

// textID returns 0 for an event without texts.
func (w writing) textID(project int64, t store.EventText) (int64, error) {
	if t == (store.EventText{}) {
		return 0, nil
	}
	id, err := w.id(w.text, project, t.StoryID, t.Digest())
	if !store.IsMissing(err) {
		return id, err
	}
	if id, err = w.id(w.addText, project, t.StoryID, t.StoryName, t.More, t.Digest()); err != nil {
		return 0, err
	}
	w.unindexed = append(w.unindexed, indexedText{id, indexed(project, t)})
	return id, nil
}

// known records that the record is stored, and reports whether it already was.
func (w writing) known(project int64, r domain.Record) (bool, error) {
	added, err := w.exec(w.addDigest, project, store.Digest(r.JSON))
	return !added, err
}

// event stores an event and its story.
func (w writing) event(e domain.Event) error {
	project, err := w.projectID(e.Project)
	if err != nil {
		return err
	}
	c := store.ColumnsOf(e.Record)
	kind, err := w.kindID(project, c.Kind)
	for err == nil && kind == 0 {
		c = c.Broader(e.Record)
		kind, err = w.kindID(project, c.Kind)
	}
	if err != nil {
		return err
	}
	text, err := w.textID(project, c.Text)
	if err != nil {
		return err
	}
	var record any
	if c.Record != nil {
		record = string(c.Record)
	}
	if _, err := w.exec(w.addEvent, e.ID, project, kind, text, e.At.UnixMilli(), e.ReceivedAt.UnixMilli(), record); err != nil {
		return err
	}
	if !store.Ours(e.Type) || c.Text.StoryID == "" {
		return nil
	}
	if c.Text.More != "" {
		if text, err = w.textID(project, store.EventText{StoryID: c.Text.StoryID, StoryName: c.Text.StoryName}); err != nil {
			return err
		}
	}
	return w.story(project, c.Text.StoryID, text)
}

// named stores the name of a story from a pipeline; see story.
func (w writing) named(s domain.StoryRef) error {
	project, err := w.projectID(s.Project)
	if err != nil {
		return err
	}
	text, err := w.textID(project, store.EventText{StoryID: s.ID, StoryName: s.Name})
	if err != nil {
		return err
	}
	return w.story(project, s.ID, text)
}

// story sets the text with a story's newest name.
func (w writing) story(project int64, id string, text int64) (err error) {
	key := storyKey{project, id}
	if known, ok := w.stories[key]; !ok || known != text {
		_, err = w.exec(w.setStory, project, id, text)
		w.stories[key] = text
	}
	return err
}
