package service

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// tokenOr returns the fencing token, or other if this gateway does not lead.
func tokenOr(l domain.Leadership, other int64) int64 {
	if token, leads := l.Token(); leads {
		return token
	}
	return other
}

// unlessLost ignores an error that only says that another gateway leads now.
func unlessLost(err error) error {
	if errors.Is(err, domain.ErrNotLeader) {
		return nil
	}
	return err
}

const newsKey = "leader_news"

// leaderReport is the leader's report on troubles: since when and why.
type leaderReport struct {
	ClockSkew   map[string]time.Time `json:"clock_skew"`  // projects whose feeds have timestamps far ahead of our clock
	Unreachable map[string]trouble   `json:"unreachable"` // projects
	Store       *trouble             `json:"store"`       // it cannot write
}

type trouble struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

// leaderNews is what only the leader can know, stored for the other gateways.
type leaderNews struct {
	store       *database
	leader      domain.Leadership
	unreachable func() map[string]trouble

	mu     sync.Mutex
	report leaderReport
	stored string // the stored form, as last read or written
}

func (n *leaderNews) recordClock(read domain.FeedRead) {
	n.mu.Lock()
	defer n.mu.Unlock()
	project := read.Cursor.Project
	if _, known := n.report.ClockSkew[project]; known == read.ClockSkewed {
		return
	}
	skew := maps.Clone(n.report.ClockSkew)
	if skew == nil {
		skew = map[string]time.Time{}
	}
	if read.ClockSkewed {
		skew[project] = read.ReceivedAt
	} else {
		delete(skew, project)
	}
	n.report.ClockSkew = skew
}

func (n *leaderNews) now() leaderReport {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.report
}

// share stores the news if this gateway leads, and reads it otherwise.
func (n *leaderNews) share(ctx context.Context) error {
	if n.leader == (domain.SoleGateway{}) {
		return nil
	}
	if token, leads := n.leader.Token(); leads {
		return n.tell(ctx, token)
	}
	text, err := n.store.State(ctx, newsKey)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil || text == n.stored || text == "" {
		return err
	}
	n.stored, n.report = text, leaderReport{}
	return json.Unmarshal([]byte(text), &n.report)
}

func (n *leaderNews) tell(ctx context.Context, token int64) error {
	news := leaderReport{ClockSkew: n.now().ClockSkew, Unreachable: n.unreachable()}
	if since, err := n.store.WriteFailure(); err != nil {
		news.Store = &trouble{since, domain.MessageOf(err)}
	}
	text := string(domain.EncodeJSON(news))
	n.mu.Lock()
	known := n.stored
	n.report.Unreachable, n.report.Store = nil, nil // they are the former leader's
	n.mu.Unlock()
	if text == known {
		return nil
	}
	if err := n.store.SetLeaderState(ctx, token, newsKey, text); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stored = text
	return nil
}
