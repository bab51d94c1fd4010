package service_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
)

// posted is a message that a receiver got.
type posted struct {
	at      time.Time
	target  string
	message domain.Message
	skipped int
	refused bool
}

// postbox stands for all receivers. It accepts everything unless answer is set.
type postbox struct {
	mu     sync.Mutex
	all    []posted
	answer func(target string, m domain.Message) domain.SendResult
	takes  time.Duration
	// troubled is the only target for which takes counts, "" for all.
	troubled string
}

func (p *postbox) Check(_ context.Context, address domain.Secret) (bool, error) {
	return strings.HasPrefix(address.Reveal(), "https:"), nil
}

func (p *postbox) Shown(domain.Secret) string { return "https://…" }

func (p *postbox) Describe(e domain.Event, _ domain.StageWords) string {
	return e.Project + " " + e.Details().StoryID
}

func (p *postbox) Send(ctx context.Context, t domain.Target, m domain.Message) (sent domain.SendResult) {
	p.mu.Lock()
	answer := p.answer
	p.mu.Unlock()
	if p.takes > 0 && (p.troubled == "" || p.troubled == t.Name) {
		select {
		case <-time.After(p.takes):
		case <-ctx.Done():
			return domain.SendResult{Err: ctx.Err()}
		}
	}
	if answer != nil {
		sent = answer(t.Name, m)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, posted{time.Now(), t.Name, m, t.Progress.Skipped, sent.Err != nil})
	return sent
}

// posts returns what was posted until now.
func (p *postbox) posts() []posted {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

func (p *postbox) says(answer func(target string, m domain.Message) domain.SendResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func refuses(status int) func(string, domain.Message) domain.SendResult {
	return func(string, domain.Message) domain.SendResult {
		return domain.SendResult{Status: status, Err: domain.Errorf(domain.BadGateway, "%d", status)}
	}
}

// take returns what a target has been sent since the last call, in short: the title, after an exclamation mark if it was refused.
func (p *postbox) take(target string) (titles []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.all {
		if m.target != target {
			continue
		}
		title := m.message.Title
		if m.refused {
			title = "!" + title
		}
		titles = append(titles, title)
	}
	p.all = slices.DeleteFunc(p.all, func(m posted) bool { return m.target == target })
	return titles
}

func (p *postbox) ids() (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.all {
		ids = append(ids, m.message.ID)
	}
	return ids
}

// told is a gateway with targets, in a test's virtual time.
type told struct {
	*service.Service
	*postbox
	t    *testing.T
	dir  string
	keep time.Duration
	wrap func(service.Store) service.Store // nil for the store as it is
	// boards answers for the projects; empty boards are the default.
	boards  service.ProjectServers
	budgets domain.Budgets
	stop    func()
	n       int
	to      string // where stories are moved, 5_done if it is empty
}

func newTold(t *testing.T) *told {
	g := &told{postbox: &postbox{}, t: t, dir: t.TempDir()}
	g.start()
	t.Cleanup(func() { g.stop() })
	return g
}

func (g *told) start() {
	g.t.Helper()
	db, err := sqlite.Open(context.Background(), g.dir)
	if err != nil {
		g.t.Fatal(err)
	}
	var used service.Store = db
	if g.wrap != nil {
		used = g.wrap(db)
	}
	g.Service, err = service.New(context.Background(), service.Options{
		Store: used, Log: slog.New(slog.DiscardHandler), AgentTimeout: time.Minute, JoinTokenTTL: time.Hour, Bot: &postingBot{posted: math.MaxInt64}, Messenger: g.postbox,
		PublicURL: "https://yard.example", KeepEvents: g.keep, Budgets: g.budgets, Projects: cmp.Or[service.ProjectServers](g.boards, flowBoards{}),
	})
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	loops.Go(func() {
		if err := g.Targets.Run(ctx); err != nil {
			g.t.Error(err)
		}
	})
	if g.boards != nil {
		loops.Go(func() { _ = g.Visits.Run(ctx) })
	}
	g.stop = func() { cancel(); loops.Wait(); db.Close() }
}

// restart stops the gateway and starts it again; between runs meanwhile.
func (g *told) restart(meanwhile time.Duration) {
	g.t.Helper()
	g.stop()
	time.Sleep(meanwhile)
	g.start()
}

func (g *told) add(name string, rules domain.TargetRules) domain.Target {
	g.t.Helper()
	rules.Digest, rules.DigestAt, rules.TimeZone = cmp.Or(rules.Digest, domain.NoDigest), cmp.Or(rules.DigestAt, "08:00"), cmp.Or(rules.TimeZone, "UTC")
	made, err := g.Targets.Add(g.t.Context(), domain.Target{Name: name, URL: "https://hooks.example/" + domain.Secret(name), Rules: rules, Enabled: true})
	if err != nil {
		g.t.Fatal(err)
	}
	return made
}

// change changes a target.
func (g *told) change(t domain.Target, edit func(*domain.Target)) {
	g.t.Helper()
	t.URL = ""
	edit(&t)
	if _, _, err := g.Targets.Change(g.t.Context(), t.ID, t); err != nil {
		g.t.Fatal(err)
	}
}

// happens records n events of a type, and returns their titles as messages have them.
func (g *told) happens(project string, kind domain.EventType, n int) (titles []string) {
	g.t.Helper()
	read := domain.FeedRead{Cursor: domain.FeedCursor{Project: project, URL: "http://" + project}, ReceivedAt: time.Now()}
	for range n {
		g.n++
		r, err := domain.ParseRecord(fmt.Appendf(nil, `{"type":%q,"story_id":"%d","story_name":"S","from_stage":"2_current","to_stage":%q,"reason":"r","timestamp_ms":%d}`,
			kind, g.n, cmp.Or(g.to, "5_done"), time.Now().UnixMilli()+int64(g.n)))
		if err != nil {
			g.t.Fatal(err)
		}
		read.Records = append(read.Records, r)
		titles = append(titles, project+": "+kind.Kind().Describe(r.Details()))
	}
	recordFeed(g.t, g.Service, read)
	return titles
}

// asks asks a question, which is an alert until it is withdrawn.
func (g *told) asks(prompt string) domain.Question {
	g.t.Helper()
	q, err := g.Questions.Ask(g.t.Context(), domain.Question{Kind: domain.QuestionText, Prompt: prompt}, 24*time.Hour)
	if err != nil {
		g.t.Fatal(err)
	}
	return q
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

var blockedOnly = domain.TargetRules{Events: []domain.EventType{domain.StoryBlocked}}

func repeated(text string, n int) []string { return slices.Repeat([]string{text}, n) }
