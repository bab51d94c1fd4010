package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"switchyard/internal/waittest"
)

// TestWhatClaudeCodeCostsIsWhatItSays: the sums of the calls that it reports equal its own total, and nothing of what was said is stored.
func TestWhatClaudeCodeCostsIsWhatItSays(t *testing.T) {
	const line = `CODER -p "make a file of fruit" --output-format json `
	own := "unset CLAUDE_CODE_ENABLE_TELEMETRY $(env | grep -o '^OTEL_[A-Z_]*')\n" + line + `--settings "$('` + switchyard(t, t.TempDir()).Path + `' hook settings)"`
	for what, run := range map[string]struct {
		line               string
		tries, ends, calls int
	}{
		"below an agent":    {line + `"$@"`, 1, 1, 2},
		"as somebody's own": {own, 0, 1, 1},
		"resumed":           {`{ ` + line + `"$@"; CODER -p "and again" --continue --output-format json "$@"; }`, 1, 2, 3},
	} {
		t.Run(what, func(t *testing.T) { costsWhatItSays(t, run.line, run.tries, run.ends, run.calls) })
	}
}

// costsWhatItSays runs a line in which the client asks so many times, ends so many times with a total, and makes so many calls.
func costsWhatItSays(t *testing.T, line string, tries, ends, calls int) {
	t.Parallel()
	c := newCodingSite(t, newSite(t), "claude", tries, line)
	for range tries {
		c.answer(c.asked(), "allow")
	}
	waittest.Until(t, "the end", func() bool { return strings.Count(c.said(), `"total_cost_usd":`) == ends })
	total := 0.0
	for said := json.NewDecoder(strings.NewReader(c.said())); ends > 0; ends-- {
		var result struct {
			Total float64 `json:"total_cost_usd"`
		}
		if err := said.Decode(&result); err != nil || result.Total <= 0 {
			t.Fatalf("%s: %v", c.said(), err)
		}
		if result.Total < total { // of its own calls only; other versions count those of all
			result.Total += total
		}
		total = result.Total
	}
	var got struct {
		Total struct {
			USD      float64
			Calls    int
			Unpriced int
		}
		Clients []struct{ Client string }
		Agents  []struct{ By string }
	}
	waittest.Until(t, "all calls", func() bool {
		_, text := c.do(t, "GET", "/api/gateway/cost?project=alpha", "")
		return json.Unmarshal([]byte(text), &got) == nil && got.Total.Calls == calls &&
			math.Abs(got.Total.USD-total) <= 0.0000005*float64(got.Total.Calls)
	})
	if got.Total.Unpriced > 0 || len(got.Clients) != 1 || got.Clients[0].Client != "claude-code" || got.Agents[0].By != "builder" {
		t.Errorf("%+v", got)
	}
	t.Logf("%d calls, %v USD", got.Total.Calls, got.Total.USD)
	stored, err := os.ReadFile(filepath.Join(c.dir, "data", "switchyard.db"))
	log, _ := os.ReadFile(filepath.Join(c.dir, "data", "switchyard.db-wal")) // if there is one
	if text := string(stored) + string(log); err != nil || strings.Contains(text, "of fruit") || !strings.Contains(text, "claude-code") {
		t.Errorf("the database has the prompt, or lacks the calls: %v", err)
	}
}

// TestKillsLoseNoCall: what was acknowledged before kill -9 is there, once, however often it is sent.
func TestKillsLoseNoCall(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		dir, address := t.TempDir(), freeAddress(t)
		begin := func() *process {
			return on.start(t, switchyard(t, dir, "gateway", "--listen="+address, "--data=DIR/data"))
		}
		p := begin()
		var acknowledged atomic.Int64
		const posts = 400
		send := func(n int) bool {
			status, _, err := p.ask("POST", "/api/gateway/usage", fmt.Sprintf(`{"id":"%d","client":"mine","model":"m","input":1,"usd":0.000001}`, n))
			return err == nil && status/100 == 2
		}
		const senders = 20 // at once, so that they share transactions
		each := func(do func(n int) bool) (ended chan struct{}) {
			var all sync.WaitGroup
			for from := range senders {
				all.Go(func() {
					for n := from; n < posts && do(n); n += senders {
					}
				})
			}
			ended = make(chan struct{})
			go func() { all.Wait(); close(ended) }()
			return ended
		}
		ended := each(func(n int) bool {
			if !send(n) {
				return false
			}
			acknowledged.Add(1)
			return true
		})
		waittest.Until(t, "some are acknowledged", func() bool { return acknowledged.Load() > 100 })
		p.killHard()
		<-ended
		p = begin()
		calls := func() int {
			var got struct{ Total struct{ Calls int } }
			_, text := p.do(t, "GET", "/api/gateway/cost", "")
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return got.Total.Calls
		}
		if kept, sent := calls(), int(acknowledged.Load()); kept < sent || kept > sent+senders {
			t.Errorf("%d calls are kept, %d were acknowledged", kept, sent)
		}
		<-each(func(n int) bool {
			if !send(n) {
				t.Error("refused")
			}
			return true
		})
		if kept := calls(); kept != posts {
			t.Errorf("%d calls, want %d", kept, posts)
		}
	})
}
