package bot_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/domain"
)

// fakeChat is a chat network in memory, for synctest bubbles.
type fakeChat struct {
	connect func(ctx context.Context, attempt int) error
	send    func(room string) error
	hang    chan struct{}                      // when set, Receive ignores its context until this is closed
	lives   func(connection int) time.Duration // when set, how long each connection lives

	mu       sync.Mutex
	attempts []time.Time
	rooms    []string
	posts    []timed
	live     int // calls of Receive that have not returned
	answer   bot.Answer
}

type timed struct {
	at         time.Time
	room, text string
}

func (c *fakeChat) Account() string { return "fake" }

func (c *fakeChat) Connect(ctx context.Context) error {
	c.mu.Lock()
	c.attempts = append(c.attempts, time.Now())
	n := len(c.attempts)
	c.mu.Unlock()
	if c.connect == nil {
		return nil
	}
	return c.connect(ctx, n)
}

func (c *fakeChat) Receive(ctx context.Context, answer bot.Answer) error {
	c.mu.Lock()
	c.live++
	c.answer = answer
	connection := len(c.attempts)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.live--
		c.mu.Unlock()
	}()
	if c.lives != nil {
		select {
		case <-ctx.Done():
		case <-time.After(c.lives(connection)):
			return errors.New("connection lost")
		}
	}
	<-ctx.Done()
	if c.hang != nil {
		<-c.hang
	}
	return ctx.Err()
}

func (c *fakeChat) Refresh(context.Context) error { return nil }

func (c *fakeChat) Rooms() []bot.Room {
	c.mu.Lock()
	defer c.mu.Unlock()
	var rooms []bot.Room
	for _, id := range c.rooms {
		rooms = append(rooms, bot.Room{ID: id, Name: id})
	}
	return rooms
}

func (c *fakeChat) Send(_ context.Context, room, _ string, m bot.Message) (string, error) {
	if c.send != nil {
		if err := c.send(room); err != nil {
			return "", err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts = append(c.posts, timed{time.Now(), room, m.PlainText()})
	return "", nil
}

func (c *fakeChat) Posted(context.Context, string, string) (bool, error) { return false, nil }

func (c *fakeChat) Hint() string { return "invite me" }

func (c *fakeChat) texts() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var texts []string
	for _, p := range c.posts {
		texts = append(texts, p.text)
	}
	return texts
}

// memory is a State without I/O.
type memory struct {
	mu     sync.Mutex
	values map[string]string
	full   bool // refuses writes
}

func (m *memory) State(_ context.Context, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], nil
}

func (m *memory) SetState(_ context.Context, key, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return errors.New("disk is full")
	}
	if m.values == nil {
		m.values = map[string]string{}
	}
	m.values[key] = value
	return nil
}

func (m *memory) RecordBotRequest(context.Context, string) (bool, error) { return true, nil }

// run starts a supervisor whose bots use the chats that build returns, until the bubble ends.
func run(t *testing.T, g *fakeGateway, build func() bot.Transport) *bot.Supervisor {
	return runOn(t, &memory{}, g, build)
}

// runOn is run with the given state.
func runOn(t *testing.T, state *memory, g *fakeGateway, build func() bot.Transport) *bot.Supervisor {
	g.configure(domain.BotConfig{Transport: "team", Settings: map[string]domain.Secret{"team_bot_token": "x", "team_signing_secret": "x"}}, nil)
	s := bot.New(bot.Options{
		State: state, Log: slog.New(slog.DiscardHandler), Operators: []string{"op"},
		Identity: func(context.Context) (string, error) { return "", nil },
		Transports: map[domain.BotTransport]func(bot.Options, map[string]domain.Secret) bot.Transport{
			"team": func(bot.Options, map[string]domain.Secret) bot.Transport { return build() },
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx, g.seen())
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	synctest.Wait()
	return s
}

func TestOldBotEndsBeforeTheNewOneStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var chats []*fakeChat
		s := run(t, newGateway(), func() bot.Transport {
			for _, c := range chats {
				if c.live != 0 {
					t.Error("a bot is started while another one lives")
				}
			}
			chats = append(chats, &fakeChat{})
			return chats[len(chats)-1]
		})
		for range 3 {
			if err := s.Restart(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		if len(chats) != 4 || chats[3].live != 1 {
			t.Errorf("%d bots", len(chats))
		}
	})
}

func TestHangingBotDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		chats := []*fakeChat{{hang: hang}, {}}
		n := 0
		s := run(t, newGateway(), func() bot.Transport { n++; return chats[n-1] })
		began := time.Now()
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
			if err := s.Restart(ctx); !strings.Contains(domain.MessageOf(err), "has not stopped yet") {
				t.Errorf("restart: %v", err)
			}
			cancel()
			if s.Status().State != domain.BotConnected {
				t.Errorf("status %+v", s.Status())
			}
		}
		if took := time.Since(began); took != 18*time.Second {
			t.Errorf("took %v", took)
		}
		close(hang)
		synctest.Wait()
		if n != 2 || chats[1].live != 1 {
			t.Errorf("%d bots; the new one must follow by itself", n)
		}
	})
}

func TestFailingBotComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chat := &fakeChat{connect: func(_ context.Context, attempt int) error {
			switch attempt {
			case 1:
				panic("canary-panic")
			case 2:
				return errors.New("canary-cause")
			case 3:
				return domain.Errorf(domain.Unauthorized, "wrong password")
			}
			return nil
		}}
		s := run(t, newGateway(), func() bot.Transport { return chat })
		if status := s.Status(); status.State != domain.BotFailed || strings.Contains(status.Detail, "canary") || status.Detail == "" {
			t.Errorf("after a panic: %+v", status)
		}
		time.Sleep(5 * time.Second)
		if status := s.Status(); status.State != domain.BotFailed || status.Detail != "wrong password" {
			t.Errorf("refused: %+v", status)
		}
		time.Sleep(5 * time.Minute)
		if status := s.Status(); status.State != domain.BotConnected || status.Detail != "invite me" || status.Rooms == nil {
			t.Errorf("at last: %+v", status)
		}
		if gap := chat.attempts[3].Sub(chat.attempts[2]); gap < 5*time.Minute {
			t.Errorf("a refused login was tried again after %v", gap)
		}
	})
}

func TestBotIsSoonBackAfterAnOutage(t *testing.T) {
	for _, test := range []struct {
		name     string
		lives    time.Duration // each of six connections
		outage   time.Duration // afterwards
		min, max time.Duration // from the end of the outage, or of the last connection, to the next one
	}{
		{"good connections", 6 * time.Second, 0, 0, time.Second},
		{"an outage after good connections", 6 * time.Second, 20 * time.Minute, 0, 10 * time.Second},
		{"connections that are lost at once", time.Second, 0, 16 * time.Second, time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const outages = 6
				var up time.Time
				chat := &fakeChat{lives: func(connection int) time.Duration {
					if connection > outages {
						return time.Hour
					}
					if connection == outages {
						up = time.Now().Add(test.lives + test.outage)
					}
					return test.lives
				}}
				chat.connect = func(context.Context, int) error {
					if time.Now().Before(up) {
						return errors.New("connection refused")
					}
					return nil
				}
				s := run(t, newGateway(), func() bot.Transport { return chat })
				time.Sleep(time.Hour / 2)
				if status := s.Status(); status.State != domain.BotConnected {
					t.Fatalf("%+v", status)
				}
				back := chat.attempts[len(chat.attempts)-1].Sub(up)
				if back < test.min || back > test.max {
					t.Errorf("connected %v after the outage, want %v to %v", back, test.min, test.max)
				}
			})
		})
	}
}

func TestDigestFollowsItsBurstAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway()
		chat := &fakeChat{rooms: []string{"ops"}}
		run(t, g, func() bot.Transport { return chat })
		g.move("alpha", 0)
		time.Sleep(1500 * time.Millisecond) // the first event is posted
		for i := range 20 {
			g.move("alpha", i)
		}
		burst := time.Now()
		time.Sleep(time.Minute)
		if got := chat.texts(); len(got) != 2 || !strings.HasPrefix(got[1], "20 events") {
			t.Fatalf("posted %q", got)
		}
		if took := chat.posts[1].at.Sub(burst); took != time.Second {
			t.Errorf("the digest came %v after the burst", took)
		}
	})
}

func TestBurstsBecomeDigests(t *testing.T) {
	stories := func(n int, projects ...string) func(*fakeGateway) {
		return func(g *fakeGateway) {
			for i := range n {
				g.move(projects[i%len(projects)], i)
			}
		}
	}
	every := func(d time.Duration, n int) func(*fakeGateway) {
		return func(g *fakeGateway) {
			for i := range n {
				g.move("alpha", i)
				time.Sleep(d)
			}
		}
	}
	for _, test := range []struct {
		name   string
		happen func(*fakeGateway)
		want   []string // the beginning of each message
	}{
		{"one", stories(1, "alpha"), []string{"alpha · s0"}},
		{"five", stories(5, "alpha"), []string{"alpha · s0", "alpha · s1", "alpha · s2", "alpha · s3", "alpha · s4"}},
		{"six", stories(6, "alpha", "beta"), []string{"6 events in 2 projects\nalpha: 3 → QA\nbeta: 3 → QA"}},
		{"ten thousand", stories(10_000, "alpha"), []string{"10,000 events in 1 project\nalpha: 10,000 → QA"}},
		{"seldom", every(3*time.Second, 4), []string{"alpha · s0", "alpha · s1", "alpha · s2", "alpha · s3"}},
		{"a trickle of nine", every(1100*time.Millisecond, 9), []string{"alpha · s0", "alpha · s1", "alpha · s2", "alpha · s3", "alpha · s4", "alpha · s5", "alpha · s6", "alpha · s7", "alpha · s8"}},
		{"a minute of ten a second", every(99*time.Millisecond, 600), []string{
			"102 events", "102 events", "102 events", "102 events", "102 events", "90 events",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGateway()
				chat := &fakeChat{rooms: []string{"ops"}}
				run(t, g, func() bot.Transport { return chat })
				test.happen(g)
				time.Sleep(time.Minute)
				got := chat.texts()
				ok := slices.EqualFunc(got, test.want, strings.HasPrefix)
				if !ok {
					t.Errorf("posted %d: %q\nwant %q", len(got), got, test.want)
				}
				for i := range chat.posts[:max(0, len(chat.posts)-6)] {
					if gap := chat.posts[i+6].at.Sub(chat.posts[i].at); gap < 10*time.Second {
						t.Errorf("7 messages within %v", gap)
					}
				}
			})
		})
	}
}

func TestDigestShowsTroubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway()
		chat := &fakeChat{rooms: []string{"ops"}}
		run(t, g, func() bot.Transport { return chat })
		for i := range 100 {
			g.move("alpha", i)
		}
		g.happen("beta", domain.MergeFailure, `"story_id":"7_login","story_name":"","reason":"conflict\nin go.mod"`)
		g.happen("alpha", domain.StoryBlocked, `"story_id":"1_pay","story_name":"Pay","reason":"API key"`)
		g.happen("alpha", domain.FeedGap, `"missed":12`)
		g.happen("alpha", "new_kind", `"story_id":"1"`)
		time.Sleep(2 * time.Second)
		want := "104 events in 2 projects\n▲ beta · merge failed · 7_login: conflict in go.mod\n■ alpha · blocked · 1_pay · Pay: API key\n" +
			"alpha: 100 → QA, 1 blocked, 1 other, 12 dropped unread\nbeta: 1 merge failed"
		if got := chat.texts(); len(got) != 1 || got[0] != want {
			t.Errorf("posted %q\nwant %q", got, want)
		}
	})
}

func TestDigestLeavesOutWhatIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway()
		for i := range 2 * domain.MaxAlerts { // more than a list of alerts shows
			g.failed = append(g.failed, domain.Item{StoryID: fmt.Sprint(i), MergeFailure: "conflict"})
		}
		g.taken = []domain.Acknowledgement{{Key: "blocked/alpha/12_pay"}}
		chat := &fakeChat{rooms: []string{"ops"}}
		run(t, g, func() bot.Transport { return chat })
		for i := range 5 {
			g.move("alpha", i)
		}
		g.happen("alpha", domain.StoryBlocked, `"story_id":"12_pay","story_name":"Pay","reason":"API key"`)
		g.happen("alpha", domain.MergeFailure, `"story_id":"12_pay","story_name":"Pay","reason":"conflict"`)
		time.Sleep(2 * time.Second)
		want := "7 events in 1 project\n▲ alpha · merge failed · 12_pay · Pay: conflict\nalpha: 5 → QA, 1 blocked, 1 merge failed"
		if got := chat.texts(); len(got) != 1 || got[0] != want {
			t.Errorf("posted %q\nwant %q", got, want)
		}
	})
}

func TestDigestIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway()
		chat := &fakeChat{rooms: []string{"ops"}}
		run(t, g, func() bot.Transport { return chat })
		long := strings.Repeat(`<\"&'`, 500)
		for i := range 2000 {
			g.happen(fmt.Sprintf("%d %s", i, strings.Repeat("é", 90)), domain.StoryBlocked, fmt.Sprintf(`"story_id":"%s","story_name":"%s","reason":"%s"`, long, long, long))
		}
		time.Sleep(2 * time.Second)
		got := chat.texts()
		if len(got) != 1 || len(got[0]) > 4100 || !strings.HasPrefix(got[0], "2,000 events in 2,000 projects") {
			t.Errorf("posted %d messages, %d bytes", len(got), len(got[0]))
		}
	})
}

func TestRoomThatRefusesIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway()
		chat := &fakeChat{rooms: []string{"bad", "good"}, send: func(room string) error {
			if room == "bad" {
				return fmt.Errorf("%w: gone", bot.ErrRefused)
			}
			return nil
		}}
		run(t, g, func() bot.Transport { return chat })
		g.move("alpha", 1)
		g.move("alpha", 2)
		time.Sleep(2 * time.Second)
		if got := chat.texts(); len(got) != 2 {
			t.Errorf("posted %q", got)
		}
	})
}

func TestFullDiskRepeatsOneMessageAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, state := newGateway(), &memory{}
		full := func(full bool) {
			state.mu.Lock()
			defer state.mu.Unlock()
			state.full = full
		}
		once := sync.OnceFunc(func() { full(true) })
		chat := &fakeChat{rooms: []string{"ops"}, send: func(string) error {
			once()
			return nil
		}}
		runOn(t, state, g, func() bot.Transport { return chat })
		g.move("alpha", 1)
		time.Sleep(time.Hour)
		full(false)
		time.Sleep(time.Hour)
		if got := chat.texts(); len(got) > 2 {
			t.Errorf("posted %d times: %q", len(got), got[0])
		}
	})
}
