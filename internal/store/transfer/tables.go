package transfer

import (
	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// table describes how to move a table.
type table struct {
	name    string
	columns []string
	// add are columns that only PostgreSQL has; change, unless nil, converts a row.
	add    []string
	change func(m *move, row []any) ([]any, error)
}

// tables are moved in this order: events come after their parts.
var tables = []table{
	{name: "state", columns: []string{"key", "value"}},
	{name: "projects", columns: []string{"name", "url", "token"}},
	{name: "feed_cursors", columns: []string{"project", "url", "since", "instance", "sequence"}},
	{name: "join_tokens", columns: []string{"hash", "created_at_ms", "expires_at_ms", "used_at_ms", "used_by", "project"}},
	{name: "agents", columns: []string{
		"id", "label", "version", "secret_hash", "state", "detail", "assigned_project", "joined_at_ms", "state_since_ms", "last_seen_ms",
	}},
	{name: "seen_once", columns: []string{"kind", "digest", "at_ms"}},
	{name: "sessions", columns: []string{"id", "who", "account", "via", "role", "created_at_ms", "last_seen_ms", "token_id"}},
	{name: "named_tokens", columns: []string{
		"id", "name", "role", "hash", "project", "agent_id", "created_at_ms", "expires_at_ms", "last_used_ms",
	}},
	{name: "audit", columns: []string{
		"id", "at_ms", "who", "via", "role", "action", "subject", "detail", "request_id", "account", "times",
	}},
	{name: "acknowledgements", columns: []string{"key", "project", "text", "by_whom", "at_ms", "until_ms", "since_ms"}},
	{name: "event_projects", columns: []string{"id", "name", "folded"}},
	{name: "event_kinds", columns: []string{"id", "type", "from_stage", "to_stage", "folded", "project_id"}, change: (*move).kind},
	{name: "event_texts", columns: []string{"id", "project_id", "story_id", "story_name", "more", "digest"}, add: []string{"folded"}, change: (*move).text},
	{name: "events", columns: []string{"id", "project_id", "kind_id", "text_id", "timestamp_ms", "received_at_ms", "record"}, change: (*move).event},
	{name: "event_digests", columns: []string{"project_id", "digest"}},
	{name: "stories", columns: []string{"project_id", "story_id", "text_id"}, change: (*move).story},
	{name: "stays", columns: []string{
		"text_id", "number", "stage", "from_ms", "to_ms", "next_stage", "shown", "blocked_ms", "blocked_since_ms", "merge_failed_since_ms",
	}, change: (*move).stay},
	{name: "moves", columns: []string{"id", "before_ms", "moves"}},
}

// kind records a kind that PostgreSQL cannot store unchanged.
func (m *move) kind(row []any) ([]any, error) {
	k := store.EventKind{Type: domain.EventType(row[1].(string)), From: row[2].(string), To: row[3].(string)}
	for i, text := range []string{string(k.Type), k.From, k.To} {
		if row[1+i] = m.key(text); row[1+i] != text {
			m.kinds[row[0].(int64)] = k
		}
	}
	return row, nil
}

// text adds the searchable form of a text, and records one that PostgreSQL cannot store unchanged.
func (m *move) text(row []any) ([]any, error) {
	t := store.EventText{StoryID: row[2].(string), StoryName: row[3].(string), More: row[4].(string)}
	row[2] = m.key(t.StoryID)
	if row[2] != t.StoryID || m.clean(t.StoryName) != t.StoryName || m.clean(t.More) != t.More {
		m.texts[row[0].(int64)] = t
	}
	return append(row, m.clean(t.Folded())), nil
}

// event stores the whole record of an event whose parts PostgreSQL cannot store unchanged.
func (m *move) event(row []any) ([]any, error) {
	_, kind := m.kinds[row[2].(int64)]
	_, text := m.texts[row[3].(int64)]
	if row[6] == nil && (kind || text) {
		record, err := m.record(row[0].(int64))
		if err != nil {
			return nil, err
		}
		row[6] = string(record)
	}
	return row, nil
}

func (m *move) story(row []any) ([]any, error) {
	row[1] = m.key(row[1].(string))
	return row, nil
}

// stay converts SQLite's number to a boolean.
func (m *move) stay(row []any) ([]any, error) {
	if shown, ok := row[6].(int64); ok {
		row[6] = shown != 0
	}
	return row, nil
}
