package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"switchyard/internal/browsertest"
)

// event is an event of a feed or of the merged stream.
type event struct {
	ID          int64  `json:"id"`
	Project     string `json:"project"`
	Type        string `json:"type"`
	StoryID     string `json:"story_id"`
	FromStage   string `json:"from_stage"`
	ToStage     string `json:"to_stage"`
	TimestampMS int64  `json:"timestamp_ms"`
}

func (e event) move() string { return e.StoryID + ": " + e.FromStage + " → " + e.ToStage }

// board is a work directory with stories in its backlog.
type board struct {
	t   *testing.T
	dir string
}

func newBoard(t *testing.T, dir string, stories int) board {
	t.Helper()
	b := board{t, dir}
	for _, stage := range []string{"1_backlog", "2_current", "3_qa"} {
		if err := os.MkdirAll(filepath.Join(dir, stage), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range stories {
		text := fmt.Sprintf("---\nname: Story number %d\n---\n", i)
		if err := os.WriteFile(b.path("1_backlog", i), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b board) path(stage string, story int) string {
	return filepath.Join(b.dir, stage, fmt.Sprintf("%d_story.md", story))
}

func (b board) move(story int, from, to string) {
	b.t.Helper()
	if err := os.Rename(b.path(from, story), b.path(to, story)); err != nil {
		b.t.Fatal(err)
	}
}

func (p *program) stream() []event {
	p.t.Helper()
	var all []event
	for after := int64(0); ; {
		var page struct {
			Events []event `json:"events"`
			Next   int64   `json:"next"`
		}
		p.get(fmt.Sprintf("/api/gateway/events?limit=1000&after=%d", after), &page)
		if len(page.Events) == 0 {
			return all
		}
		all, after = append(all, page.Events...), page.Next
	}
}

func (p *program) feed() (events []event) {
	p.t.Helper()
	p.get("/api/events?since=0", &events)
	return events
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestAMoveIsSeenOnceFromTheFileToTheBrowser(t *testing.T) {
	home := t.TempDir()
	work := newBoard(t, filepath.Join(home, "alpha", ".huskies", "work"), 3)
	up := launch(t, home, "up", "--listen", "localhost:0", work.dir)
	var registry struct {
		Active   string
		Projects []struct{ Name, URL string }
	}
	up.get("/api/gateway", &registry)
	if len(registry.Projects) != 1 || registry.Active != "alpha" || registry.Projects[0].Name != "alpha" {
		t.Fatalf("registry %+v, want alpha alone and active", registry)
	}
	server := &program{t: t, url: registry.Projects[0].URL}
	overview, events := browsertest.Open(t), browsertest.Open(t)
	overview.Goto(up.url + "/")
	events.Goto(up.url + "/events")
	overview.WaitText("alpha")

	for i := range 3 {
		work.move(i, "1_backlog", "2_current")
		until(t, "the move in the stream", func() bool { return len(up.stream()) == 2*i+1 })
		work.move(i, "2_current", "3_qa")
		until(t, "the second move in the stream", func() bool { return len(up.stream()) == 2*i+2 })
	}
	for _, where := range []struct {
		name string
		list []event
	}{{"project server", server.feed()}, {"merged stream", up.stream()}} {
		if len(where.list) != 6 {
			t.Errorf("%s has %d events, want 6", where.name, len(where.list))
			continue
		}
		for i, e := range where.list {
			want := fmt.Sprintf("%d_story: 1_backlog → 2_current", i/2)
			if i%2 == 1 {
				want = fmt.Sprintf("%d_story: 2_current → 3_qa", i/2)
			}
			if e.move() != want {
				t.Errorf("%s: event %d is %s, want %s", where.name, i, e.move(), want)
			}
		}
	}
	for name, tab := range map[string]*browsertest.Tab{"overview": overview, "events": events} {
		for i := range 3 {
			tab.WaitText(fmt.Sprintf("Story number %d", i))
		}
		seen := browsertest.Eval[int](tab, `document.querySelectorAll("li[id^=event-]").length`)
		if seen != 6 {
			t.Errorf("%s shows %d events, want each of the 6 once", name, seen)
		}
	}
	if status := up.stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

func TestAKilledGatewayLosesAndDoublesNothing(t *testing.T) {
	home := t.TempDir()
	const moves = 200
	work := newBoard(t, filepath.Join(home, "work"), moves)
	server := launch(t, home, "project", "--name", "alpha", "--work", work.dir, "--listen", "127.0.0.1:0")
	listen := freeAddress(t)
	start := func() *program { return launch(t, home, "gateway", "--listen", listen, "--poll-interval", "100ms") }
	gateway := start()
	gateway.post("/api/gateway/projects", map[string]string{"name": "alpha", "url": server.url}, &struct{}{})
	for i := range moves {
		work.move(i, "1_backlog", "2_current")
		switch i % 50 {
		case 20: // in the middle of what it reads
			until(t, "some of the moves in the stream", func() bool { return len(gateway.stream()) > i-20 })
			gateway.kill()
		case 35: // some moves later
			gateway = start()
		}
	}
	until(t, "all moves recorded", func() bool { return len(server.feed()) == moves })
	until(t, "all moves in the stream", func() bool { return len(gateway.stream()) >= moves })
	sameEvents(t, gateway.stream(), server.feed())
}

func TestAKilledProjectServerLosesNothingThatItStillHolds(t *testing.T) {
	home := t.TempDir()
	const moves = 200
	work := newBoard(t, filepath.Join(home, "work"), moves)
	listen := freeAddress(t)
	start := func() *program {
		return launch(t, home, "project", "--name", "alpha", "--work", work.dir, "--listen", listen)
	}
	server := start()
	gateway := launch(t, home, "gateway", "--listen", "localhost:0", "--poll-interval", "100ms")
	gateway.post("/api/gateway/projects", map[string]string{"name": "alpha", "url": server.url}, &struct{}{})
	for i := range moves / 2 {
		work.move(i, "1_backlog", "2_current")
	}
	until(t, "the first half recorded", func() bool { return len(server.feed()) == moves/2 })
	until(t, "the first half in the stream", func() bool { return len(gateway.stream()) == moves/2 })
	before := gateway.stream()
	server.kill()
	work.move(moves/2, "1_backlog", "2_current") // nobody looks: not news to the next one
	server = start()
	for i := moves/2 + 1; i < moves; i++ {
		work.move(i, "1_backlog", "2_current")
	}
	held := moves/2 - 1
	until(t, "the second half recorded", func() bool { return len(server.feed()) == held })
	until(t, "the second half in the stream", func() bool { return len(gateway.stream()) >= moves/2+held })
	all := gateway.stream()
	sameEvents(t, all[:moves/2], before)
	sameEvents(t, all[moves/2:], server.feed())
}

// sameEvents reports where the stream is not the wanted events, each once and in their order, under increasing ids.
func sameEvents(t *testing.T, stream, want []event) {
	t.Helper()
	if len(stream) != len(want) {
		t.Errorf("%d events in the stream, want %d", len(stream), len(want))
	}
	for i := range min(len(stream), len(want)) {
		if stream[i].move() != want[i].move() || stream[i].TimestampMS != want[i].TimestampMS {
			t.Errorf("event %d is %s at %d, want %s at %d", i, stream[i].move(), stream[i].TimestampMS, want[i].move(), want[i].TimestampMS)
		}
		if i > 0 && stream[i].ID <= stream[i-1].ID {
			t.Errorf("id %d follows %d", stream[i].ID, stream[i-1].ID)
		}
	}
}
