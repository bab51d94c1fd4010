package transfer

import (
	"encoding/json"

	"switchyard/internal/domain"
	"switchyard/internal/store"
	"switchyard/internal/store/postgres"
)

type table struct {
	name    string
	columns []string
	// add are columns that only PostgreSQL has; change, unless nil, converts a row.
	add    []string
	change func(row []any) ([]any, error)
}

// tables are moved in this order.
var tables = []table{
	{name: "state", columns: []string{"key", "value"}},
	{name: "projects", columns: []string{"name", "url", "token"}},
	{name: "feed_cursors", columns: []string{"project", "url", "since", "instance", "sequence"}},
	{name: "join_tokens", columns: []string{"hash", "created_at_ms", "expires_at_ms", "used_at_ms", "used_by", "project"}},
	{name: "agents", columns: []string{
		"id", "label", "version", "secret_hash", "state", "detail", "assigned_project", "joined_at_ms", "state_since_ms",
		"last_seen_ms",
	}},
	{name: "seen_once", columns: []string{"kind", "digest", "at_ms"}},
	{name: "sessions", columns: []string{
		"id", "who", "account", "via", "role", "created_at_ms", "last_seen_ms",
		"token_id",
	}},
	{name: "named_tokens", columns: []string{
		"id", "name", "role", "hash", "project", "agent_id", "created_at_ms", "expires_at_ms", "last_used_ms",
	}},
	{name: "audit", columns: []string{
		"id", "at_ms", "who", "via", "role", "action", "subject", "detail", "request_id", "account", "times",
	}},
	{name: "removals", columns: []string{"id", "removal", "at_ms"}},
	{name: "acknowledgements", columns: []string{"key", "project", "text", "by_whom", "at_ms", "until_ms", "since_ms"}},
	{
		name: "events", columns: []string{"id", "project", "received_at_ms", "record"},
		add: []string{"timestamp_ms", "type", "story_id", "story_name", "from_stage", "to_stage", "words"}, change: event,
	},
	{name: "event_digests", columns: []string{"digest"}},
	{name: "stories", columns: []string{"id", "project", "story_id", "story_name"}, add: []string{"words"}, change: story},
	{name: "stage_visits", columns: []string{
		"project", "story_id", "number", "stage", "from_ms", "to_ms", "next_stage", "source", "blocked_ms",
		"blocked_since_ms",
		"merge_failed_since_ms", "event_ms",
	}},
	{name: "visit_counts", columns: []string{"project", "open_visits", "stages"}},
}

// event adds the columns that SQLite computes, and the words.
func event(row []any) ([]any, error) {
	r, err := domain.ParseRecord(json.RawMessage(row[3].(string)))
	if err != nil {
		return nil, err
	}
	row = append(row, r.At.UnixMilli())
	for _, text := range postgres.EventTexts(row[1].(string), r) {
		row = append(row, text)
	}
	return row, nil
}

func story(row []any) ([]any, error) {
	id, name := row[2].(string), row[3].(string)
	row[2] = postgres.Key(id)
	return append(row, store.StoryWords(id, name)), nil
}
