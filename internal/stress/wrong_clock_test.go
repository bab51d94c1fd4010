//go:build stress

package stress

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clocks are the clock errors of the three gateways' machines.
var clocks = []time.Duration{time.Hour, -time.Hour, 0}

// wrongClock is added to package time. It adds the seconds in an environment variable to the time of day.
const wrongClock = `package time

import "syscall"

var wrongBy = func() int64 {
	text, _ := syscall.Getenv("WRONG_CLOCK")
	seconds, _ := atoi(text)
	return int64(seconds)
}()

func wrongNow() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = runtimeNow()
	return sec + wrongBy, nsec, mono
}
`

// buildWithWrongClock builds the program with a package time whose clock can be wrong.
func buildWithWrongClock(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, std := t.TempDir(), filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	original, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	const right, wrong = "sec, nsec, mono := runtimeNow()", "sec, nsec, mono := wrongNow()"
	changed := strings.Replace(string(original), right, wrong, 1)
	if changed == string(original) {
		t.Fatal("time.Now is not what it was")
	}
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": changed, "wrong.go": wrongClock} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(std, name)] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	return build(t, "-overlay", file)
}

// newGroupWithWrongClocks starts gateways whose machines' clocks are wrong, with more environment variables.
func newGroupWithWrongClocks(t *testing.T, token string, more ...string) *group {
	t.Helper()
	g := newGroupOf(t, buildWithWrongClock(t), token, func(i int) []string {
		return append([]string{fmt.Sprint("WRONG_CLOCK=", int(clocks[i].Seconds()))}, more...)
	})
	for i, m := range g.members {
		said := strings.Contains(m.lastLines(20), "the clocks of this machine and the database differ")
		if said != (clocks[i] != 0) {
			t.Errorf("gateway %d says that its clock is wrong: %t", i, said)
		}
	}
	return g
}

// everyHandOver makes another gateway lead, in each way, as often as there are gateways.
func (g *group) everyHandOver() {
	for range g.members {
		g.killAndFreeze()
		m := g.leader()
		m.stop()
		time.Sleep(time.Second)
		m.start()
		time.Sleep(2 * time.Second)
	}
}

func TestWrongClocksLoseAndDoubleNothing(t *testing.T) {
	began := time.Now()
	g := newGroupWithWrongClocks(t, "")
	projects, address := newNumbered(t, 10)
	for _, p := range projects {
		must(t, "POST", g.members[0].url+"/api/gateway/projects", map[string]string{"name": p.name, "url": address + "/" + p.name}, nil)
	}
	handedOver := make(chan struct{})
	go func() { g.everyHandOver(); close(handedOver) }()
	for tick, over := time.NewTicker(50*time.Millisecond), false; !over; {
		for _, p := range projects {
			p.push()
		}
		select {
		case <-tick.C:
		case <-handedOver:
			over = true
		}
	}
	total := 0
	for _, p := range projects {
		total += p.count()
	}
	g.await(returned)
	var stream []event
	for i, m := range g.members {
		if !until(returned, func() bool { stream = wholeStream(t, m.url); return len(stream) >= total }) || len(stream) != total {
			t.Fatalf("gateway %d has %d events of %d", i, len(stream), total)
		}
		next, received := map[string]int{}, int64(0)
		for _, e := range stream {
			if e.StoryID != fmt.Sprint(next[e.Project]) {
				t.Fatalf("gateway %d: %s %s where number %d was due", i, e.Project, e.StoryID, next[e.Project])
			}
			next[e.Project]++
			if at := time.UnixMilli(e.Received); at.Before(began.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) || e.Received < received-1000 {
				t.Fatalf("gateway %d: event %d was received at %v, the one before at %v", i, e.ID, at, time.UnixMilli(received))
			}
			received = e.Received
		}
	}
	t.Logf("%d events, none lost or doubled", total)
}

func TestWrongClocksPostEachEventOnce(t *testing.T) {
	g := newGroupWithWrongClocks(t, "")
	postsEachEventOnce(t, g, g.everyHandOver)
}
