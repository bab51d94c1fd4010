package agentrun_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/waittest"
)

// beat is a heartbeat that the fake gateway received.
type beat struct {
	State, Detail string
	wait          string
	at            time.Time
	size          int // of its body, in bytes
}

// fakeGateway knows one agent, a1 with the secret s1.
type fakeGateway struct {
	*httptest.Server
	mu      sync.Mutex
	status  int // of its responses, 0 for success
	project string
	address string // the project's
	waiting string // a story that may be claimed
	looks   int    // for one
	beats   []beat
	joins   int
	tokens  int           // issued for the command
	ended   bool          // the last token is no longer valid
	noToken bool          // the gateway does not issue tokens, like earlier versions
	changed chan struct{} // closed at a change of the assignment
}

func newFakeGateway(t *testing.T) *fakeGateway {
	g := &fakeGateway{changed: make(chan struct{})}
	g.Server = httptest.NewServer(g)
	t.Cleanup(func() {
		g.CloseClientConnections()
		g.Close()
	})
	return g
}

func (g *fakeGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Token, State, Detail string }
	data, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(data, &body)
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	g.mu.Lock()
	changed, project, status := g.changed, g.project, g.status
	joining := r.URL.Path == "/gateway/agents"
	switch {
	case r.URL.Path == "/gateway/agents/a1/token" || r.URL.Path == "/gateway/mode":
		g.answerToken(w, r)
		g.mu.Unlock()
		return
	case strings.HasPrefix(r.URL.Path, "/api/gateway/projects/"):
		g.looks++
		if g.waiting == "" {
			w.WriteHeader(http.StatusNoContent)
		} else {
			fmt.Fprintf(w, `{"story_id":%q}`, g.waiting)
		}
		g.mu.Unlock()
		return
	case joining:
		g.joins++
	default:
		g.beats = append(g.beats, beat{body.State, body.Detail, r.URL.Query().Get("wait"), time.Now(), len(data)})
	}
	g.mu.Unlock()
	if status != 0 {
		http.Error(w, "no", status)
		return
	}
	if !joining && r.Header.Get("Authorization") != "Bearer s1" {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	if !joining && project == r.URL.Query().Get("assigned") && wait > time.Second {
		select {
		case <-changed:
		case <-r.Context().Done():
		}
		g.mu.Lock()
		project = g.project
		g.mu.Unlock()
	}
	g.mu.Lock()
	address := g.address
	g.mu.Unlock()
	agent := map[string]any{"id": "a1", "label": "label", "assigned_project": nil, "project_url": nil}
	if project != "" {
		agent["assigned_project"], agent["project_url"] = project, address
	}
	if joining {
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"agent": agent, "secret": "s1"})
		return
	}
	_ = json.NewEncoder(w).Encode(agent)
}

// answerToken issues a token for the command, or checks one. The caller holds mu.
func (g *fakeGateway) answerToken(w http.ResponseWriter, r *http.Request) {
	switch caller := r.Header.Get("Authorization"); {
	case g.noToken:
		http.NotFound(w, r)
	case r.URL.Path == "/gateway/mode" && (g.ended || caller != fmt.Sprintf("Bearer swk_%d", g.tokens)), r.Method == "POST" && caller != "Bearer s1":
		http.Error(w, "no", http.StatusUnauthorized)
	case r.Method == "POST":
		g.tokens++
		g.ended = false
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token":"swk_%d","project":%q}`, g.tokens, g.project)
	}
}

func (g *fakeGateway) assign(project string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.project = project
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *fakeGateway) seen() []beat {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]beat(nil), g.beats...)
}

// said waits for a heartbeat for which ok returns true.
func (g *fakeGateway) said(t *testing.T, what string, ok func(beat) bool) beat {
	t.Helper()
	var found beat
	waittest.Until(t, what, func() bool {
		for _, b := range g.seen() {
			if ok(b) {
				found = b
				return true
			}
		}
		return false
	})
	return found
}
