package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/internal/browsertest"
	"switchyard/internal/sample"
)

// sampleUp runs switchyard up on a directory of data.
func sampleUp(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return start(t, switchyard(t, dir, append([]string{"up", "--listen=localhost:0", "--data=DIR/data"}, args...)...))
}

// samples returns how many of its projects are registered, and how many projects there are.
func (p *process) samples(t *testing.T) (samples, all int) {
	t.Helper()
	_, urls := p.registry(t)
	for _, name := range sample.Names() {
		if urls[name] != "" {
			samples++
		}
	}
	return samples, len(urls)
}

func wantSamples(t *testing.T, p *process, samples, all int) {
	t.Helper()
	if s, n := p.samples(t); s != samples || n != all {
		t.Errorf("%d projects of the sample among %d, want %d among %d", s, n, samples, all)
	}
}

// lastEvent returns the id of the newest event.
func (p *process) lastEvent(t *testing.T) int {
	t.Helper()
	_, text := p.do(t, "GET", "/api/gateway/events?before=&limit=1", "")
	var page struct{ Events []struct{ ID int } }
	if err := json.Unmarshal([]byte(text), &page); err != nil || len(page.Events) != 1 {
		t.Fatal(text, err)
	}
	return page.Events[0].ID
}

// nextEvent looks at a page and waits for the next event.
func (p *process) nextEvent(t *testing.T) {
	t.Helper()
	p.do(t, "GET", "/", "")
	if _, text := p.do(t, "GET", fmt.Sprintf("/api/gateway/events?wait=30s&after=%d", p.lastEvent(t)), ""); !strings.Contains(text, `"id":`) {
		t.Fatalf("nothing moves: %s; %s", text, &p.stderr)
	}
}

// TestUpShowsALivingSampleAtFirst: four projects with a past, whose stories move while somebody looks at a page. A process
// that was killed goes on with them.
func TestUpShowsALivingSampleAtFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := sampleUp(t, dir)
	wantSamples(t, p, 4, 4)
	p.eventually(t, "/api/gateway/pipeline", `"16_story_search_with_typos"`, "conflict in billing/basket.go", `"6_archived"`)
	p.eventually(t, "/api/gateway/flow?days=30", `"sample-shop"`)
	p.eventually(t, "/waiting", "Check addresses")
	before := p.lastEvent(t)
	p.eventually(t, "/", "L1") // an agent's badge on its story; each page is a look
	p.eventually(t, "/events", "Today")
	p.nextEvent(t)
	p.stop(t, syscall.SIGKILL)
	made, _ := filepath.Glob(filepath.Join(dir, "data", "sample", "*", "*", "*.md"))
	p = sampleUp(t, dir)
	wantSamples(t, p, 4, 4)
	if again, _ := filepath.Glob(filepath.Join(dir, "data", "sample", "*", "*", "*.md")); strings.Join(again, " ") != strings.Join(made, " ") {
		t.Errorf("after a kill there are %s, not %s", again, made)
	}
	if events := p.lastEvent(t); events > before+3 {
		t.Errorf("%d events instead of %d: the past has come twice", events, before)
	}
}

func TestAnAnswerLetsTheBlockedStoryOfTheSampleGoOn(t *testing.T) {
	t.Parallel()
	p := sampleUp(t, t.TempDir())
	const story = "/api/gateway/projects/sample-shop/stories/15_story_pay_by_card"
	p.eventually(t, story, `"blocked":"Which provider`)
	p.eventually(t, "/questions", "Which provider takes the card payments?") // looking makes the agents work, and ask
	if status, text := p.do(t, "POST", "/api/gateway/questions/1/answer", `{"value":"The cheapest one"}`); status != 200 {
		t.Fatal(status, text)
	}
	p.eventually(t, story, `"blocked":null`, `"stage":"3_qa"`)
}

// TestARealProjectTakesThePlaceOfTheSample, which comes back when it is asked for.
func TestARealProjectTakesThePlaceOfTheSample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := sampleUp(t, dir)
	wantSamples(t, p, 4, 4)
	p.stop(t, syscall.SIGTERM)
	stages(t, filepath.Join(dir, "alpha"), "1_story_login")
	p = sampleUp(t, dir, "DIR/alpha")
	wantSamples(t, p, 0, 1)
	if !strings.Contains(p.said, "The sample is removed") {
		t.Errorf("it said %q", p.said)
	}
	if active, _ := p.registry(t); active != "alpha" {
		t.Errorf("active is %s", active)
	}
	p.stop(t, syscall.SIGTERM)
	for _, args := range [][]string{{"--sample"}, nil} { // beside what the last start served, and from then on
		p = sampleUp(t, dir, args...)
		wantSamples(t, p, 4, 5)
		p.stop(t, syscall.SIGTERM)
	}
	if status, says := refused(t, switchyard(t, dir, "up", "--listen=localhost:0", "--data=DIR/data", "--sample", "DIR/alpha")); status != exitUsage {
		t.Errorf("with a directory: %d %s", status, says)
	}
}

// TestTheSampleIsRemovedByOneClick: projects, agents, history and files, until it is asked for again. Projects of one's own
// stay.
func TestTheSampleIsRemovedByOneClick(t *testing.T) {
	browsertest.Needed(t)
	dir := t.TempDir()
	p := sampleUp(t, dir)
	tab := browsertest.Open(t)
	tab.Goto(p.url + "/")
	tab.Wait(`document.querySelector('.wagon')?.closest('main').innerText.includes('L1')`)
	tab.Goto(p.url + "/projects")
	tab.Find("button", "Remove the sample").Click()
	tab.WaitText("Remove the sample?")
	tab.Find("button", "Cancel").Click()
	remote{t, p.url}.register("mine", "http://127.0.0.1:9")
	tab.Goto(p.url + "/projects")
	tab.Find("button", "Remove the sample").Click()
	for _, b := range tab.All("button", "Remove") {
		if b.Call("function() { return String(this.closest('form')?.action.endsWith('/remove-sample')) }") == "true" {
			b.Click()
		}
	}
	tab.WaitText("The sample is removed.")
	wantSamples(t, p, 0, 1)
	for path, want := range map[string]string{"/gateway/agents": "[]", "/api/gateway/questions": `{"questions":[]}`} {
		if _, text := p.do(t, "GET", path, ""); strings.TrimSpace(text) != want {
			t.Errorf("%s is still %s", path, text)
		}
	}
	if _, text := p.do(t, "GET", "/api/gateway/events", ""); strings.Contains(text, "sample-") {
		t.Errorf("there are still events: %s", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "sample")); err == nil {
		t.Error("its files are still there")
	}
	p.do(t, "DELETE", "/api/gateway/projects/mine", "")
	tab.Goto("about:blank") // the page would complain that its gateway is away
	p.stop(t, syscall.SIGTERM)
	p = sampleUp(t, dir)
	wantSamples(t, p, 0, 0)
}

// TestASampleWhoseProjectsWereRemovedStaysAway, one after the other, as any project is.
func TestASampleWhoseProjectsWereRemovedStaysAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for left := 4; left >= 0; left-- {
		p := sampleUp(t, dir)
		wantSamples(t, p, left, left)
		if left > 0 {
			p.do(t, "DELETE", "/api/gateway/projects/"+sample.Names()[left-1], "")
		}
		p.stop(t, syscall.SIGTERM)
	}
	p := sampleUp(t, dir, "--sample")
	wantSamples(t, p, 4, 4)
	for _, name := range sample.Names() {
		if text := fmt.Sprintf("Project %s is served at", name); !strings.Contains(p.said, text) {
			t.Errorf("%q is not in %q", text, p.said)
		}
	}
}

func TestOnlyAGatewayWithASampleRemovesOne(t *testing.T) {
	t.Parallel()
	p := start(t, switchyard(t, t.TempDir(), "gateway", "--listen=localhost:0", "--data=DIR/data"))
	if status, text := p.do(t, "POST", "/remove-sample", ""); status != 404 {
		t.Errorf("%d %s", status, text)
	}
}
