package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"switchyard/internal/browsertest"
	"switchyard/internal/waittest"
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

// stories is a work directory with stories in its backlog.
type stories struct {
	t   *testing.T
	dir string
}

func newStories(t *testing.T, dir string, count int) stories {
	t.Helper()
	b := stories{t, dir}
	for _, stage := range []string{"1_backlog", "2_current", "3_qa"} {
		if err := os.MkdirAll(filepath.Join(dir, stage), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range count {
		text := fmt.Sprintf("---\nname: Story number %d\n---\n", i)
		if err := os.WriteFile(b.path("1_backlog", i), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b stories) path(stage string, story int) string {
	return filepath.Join(b.dir, stage, fmt.Sprintf("%d_story.md", story))
}

func (b stories) move(story int, from, to string) {
	b.t.Helper()
	if err := os.Rename(b.path(from, story), b.path(to, story)); err != nil {
		b.t.Fatal(err)
	}
}

// remote is a gateway or a project server to query.
type remote struct {
	t   *testing.T
	url string
}

// get asks for a path and decodes the answer into v.
func (s remote) get(path string, v any) {
	s.t.Helper()
	p := process{url: s.url}
	status, text := p.do(s.t, "GET", path, "")
	if err := json.Unmarshal([]byte(text), v); err != nil || status != 200 {
		s.t.Fatalf("%s: %d, %v: %s", path, status, err, text)
	}
}

func (s remote) feed() (events []event) {
	s.t.Helper()
	s.get("/api/events?since=0", &events)
	return events
}

func (s remote) stream() []event {
	s.t.Helper()
	var all []event
	for after := int64(0); ; {
		var page struct {
			Events []event `json:"events"`
			Next   int64   `json:"next"`
		}
		s.get(fmt.Sprintf("/api/gateway/events?limit=1000&after=%d", after), &page)
		if len(page.Events) == 0 {
			return all
		}
		all, after = append(all, page.Events...), page.Next
	}
}

func (s remote) register(name, url string) {
	s.t.Helper()
	p := process{url: s.url}
	if status, text := p.do(s.t, "POST", "/api/gateway/projects", fmt.Sprintf(`{"name":%q,"url":%q}`, name, url)); status != 200 {
		s.t.Fatalf("registering: %d %s", status, text)
	}
}

// killHard is kill -9.
func (p *process) killHard() {
	_ = p.Process.Kill()
	<-p.ended
}

// freeAddress returns an address for a server that is restarted. It is below the ephemeral ports, which start at 32768, so that no
// other process takes it in the meantime.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if listener, err := net.Listen("tcp", address); err == nil {
			listener.Close()
			return address
		}
	}
}

func TestAMoveIsSeenOnceFromTheFileToTheBrowser(t *testing.T) {
	browsertest.Needed(t)
	onEachEngine(t, func(t *testing.T, on engine) {
		dir := t.TempDir()
		work := newStories(t, filepath.Join(dir, "alpha", ".huskies", "work"), 3)
		up := on.start(t, switchyard(t, dir, "up", "--listen=localhost:0", work.dir))
		gateway := remote{t, up.url}
		var registry struct {
			Active   string
			Projects []struct{ Name, URL string }
		}
		gateway.get("/api/gateway", &registry)
		if len(registry.Projects) != 1 || registry.Active != "alpha" || registry.Projects[0].Name != "alpha" {
			t.Fatalf("registry %+v, want alpha alone and active", registry)
		}
		overview := browsertest.Open(t)
		events := overview.Another()
		overview.Goto(up.url + "/")
		events.Goto(up.url + "/events")
		overview.WaitText("alpha")

		var want []string
		for i := range 3 {
			for _, move := range [][2]string{{"1_backlog", "2_current"}, {"2_current", "3_qa"}} {
				work.move(i, move[0], move[1])
				want = append(want, fmt.Sprintf("%d_story: %s → %s", i, move[0], move[1]))
				waittest.Until(t, "the move in the stream", func() bool { return len(gateway.stream()) == len(want) })
			}
		}
		for where, list := range map[string][]event{"project server": remote{t, registry.Projects[0].URL}.feed(), "stream": gateway.stream()} {
			var got []string
			for _, e := range list {
				got = append(got, e.move())
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s has %q, want %q", where, got, want)
			}
		}
		for name, tab := range map[string]*browsertest.Tab{"overview": overview, "events": events} {
			for i := range 3 {
				tab.WaitText(fmt.Sprintf("Story number %d", i))
			}
			tab.Wait(`document.querySelectorAll("li[id^=event-]").length >= 6`)
			if seen := browsertest.Eval[int](tab, `document.querySelectorAll("li[id^=event-]").length`); seen != 6 {
				t.Errorf("%s shows %d events, want each of the 6 once", name, seen)
			}
		}
		for _, tab := range []*browsertest.Tab{overview, events} {
			tab.Goto("about:blank") // the pages would complain, rightly
		}
		if status, _ := up.stop(t, syscall.SIGTERM); status != 0 {
			t.Errorf("exit status %d", status)
		}
	})
}

func TestAKilledGatewayLosesAndDoublesNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		const moves = 200
		dir := t.TempDir()
		work := newStories(t, filepath.Join(dir, "work"), moves)
		project := start(t, switchyard(t, dir, "project", "--name=alpha", "--work="+work.dir, "--listen=127.0.0.1:0"))
		held := remote{t, project.url}
		address := freeAddress(t)
		begin := func() (*process, remote) {
			p := on.start(t, switchyard(t, dir, "gateway", "--listen="+address, "--poll-interval=100ms"))
			return p, remote{t, p.url}
		}
		p, gateway := begin()
		gateway.register("alpha", project.url)
		for i := range moves {
			work.move(i, "1_backlog", "2_current")
			switch i % 50 {
			case 20: // in the middle of what it reads
				waittest.Until(t, "some of the moves in the stream", func() bool { return len(gateway.stream()) > i-20 })
				p.killHard()
			case 35: // some moves later
				p, gateway = begin()
			}
		}
		waittest.Until(t, "all moves recorded", func() bool { return len(held.feed()) == moves })
		waittest.Until(t, "all moves in the stream", func() bool { return len(gateway.stream()) >= moves })
		sameEvents(t, gateway.stream(), held.feed())
	})
}

func TestAKilledProjectServerLosesNothingThatItStillHolds(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		const moves = 200
		dir := t.TempDir()
		work := newStories(t, filepath.Join(dir, "work"), moves)
		address := freeAddress(t)
		begin := func() (*process, remote) {
			p := start(t, switchyard(t, dir, "project", "--name=alpha", "--work="+work.dir, "--listen="+address))
			return p, remote{t, p.url}
		}
		p, held := begin()
		gateway := remote{t, on.start(t, switchyard(t, dir, "gateway", "--listen=localhost:0", "--poll-interval=100ms")).url}
		gateway.register("alpha", held.url)
		for i := range moves / 2 {
			work.move(i, "1_backlog", "2_current")
		}
		waittest.Until(t, "the first half recorded", func() bool { return len(held.feed()) == moves/2 })
		waittest.Until(t, "the first half in the stream", func() bool { return len(gateway.stream()) == moves/2 })
		before := gateway.stream()
		p.killHard()
		work.move(moves/2, "1_backlog", "2_current") // nobody looks: not news to the next one
		_, held = begin()
		for i := moves/2 + 1; i < moves; i++ {
			work.move(i, "1_backlog", "2_current")
		}
		second := moves/2 - 1
		waittest.Until(t, "the second half recorded", func() bool { return len(held.feed()) == second })
		waittest.Until(t, "the second half in the stream", func() bool { return len(gateway.stream()) >= moves/2+second })
		all := gateway.stream()
		sameEvents(t, all[:moves/2], before)
		sameEvents(t, all[moves/2:], held.feed())
	})
}

// sameEvents checks that the stream has exactly the wanted events, in order, under increasing ids.
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
