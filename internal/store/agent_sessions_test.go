package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// TestOfASessionWhatWasHeardLastIsStored, whichever gateway stores it first.
func TestOfASessionWhatWasHeardLastIsStored(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		long := strings.Repeat("\U0001f680", domain.MaxText)
		at := func(id string, ms int64, tool string) domain.AgentSession {
			return domain.AgentSession{Asker: "token 1", ID: id, State: domain.SessionWorking, Tool: tool, Uses: []string{"a b"}, Last: time.UnixMilli(ms), Started: time.UnixMilli(1)}
		}
		for _, step := range []struct {
			now, gone []domain.AgentSession
			want      []string
		}{
			{[]domain.AgentSession{at("a", 5, "first"), at(long, 5, "long")}, nil, []string{"first", "long"}},
			{[]domain.AgentSession{at("a", 4, "early")}, nil, []string{"first", "long"}},
			{[]domain.AgentSession{at("a", 6, "later\x00")}, []domain.AgentSession{at("b", 9, ""), at(long, 4, "")}, []string{"later\x00", "long"}},
			{nil, []domain.AgentSession{at(long, 5, "")}, []string{"later\x00"}},
			{nil, []domain.AgentSession{at("a", 7, "")}, nil},
		} {
			if err := db.SaveAgentSessions(t.Context(), step.now, step.gone); err != nil {
				t.Fatal(err)
			}
			list, err := db.AgentSessions(t.Context())
			var tools []string
			for _, s := range list {
				tools = append(tools, s.Tool)
				if s.Started.UnixMilli() != 1 || !slices.Equal(s.Uses, []string{"a b"}) || !s.ToolSince.IsZero() {
					t.Errorf("stored: %+v", s)
				}
			}
			if slices.Sort(tools); err != nil || !slices.Equal(tools, step.want) {
				t.Errorf("%q, %v, want %q", tools, err, step.want)
			}
		}
	})
}
