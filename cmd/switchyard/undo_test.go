package main

import (
	"encoding/json"
	"testing"
	"time"

	"switchyard/internal/browsertest"
)

// TestAMoveAndItsUndoChangeNoAge: once both were seen, the time in the stage, the journey and what needs attention are what they
// were before.
func TestAMoveAndItsUndoChangeNoAge(t *testing.T) {
	browsertest.Needed(t)
	r, now := newRepository(t), time.Now()
	r.moves(now.AddDate(0, 0, -20), "", "1_backlog", 1)
	r.moves(now.AddDate(0, 0, -9), "1_backlog", "2_current", 1)
	up := start(t, switchyard(t, t.TempDir(), "up", "--listen=localhost:0", "--data=DIR/data", "--name=shop", r.dir))
	attention := func() string {
		var answer struct {
			Alerts []struct {
				Kind    string `json:"kind"`
				StoryID string `json:"story_id"`
				SinceMS int64  `json:"since_ms"`
			} `json:"items"`
		}
		remote{t, up.url}.get("/api/gateway/attention", &answer)
		text, _ := json.Marshal(answer.Alerts) // texts and numbers always encode
		return string(text)
	}
	tab := browsertest.Open(t)
	tab.Goto(up.url + "/projects/shop/stories/1_story")
	inCurrent := `document.body.innerText.replace(/\s+/g, ' ').includes('in Current for 9 d Stuck')`
	tab.Wait(inCurrent)
	journey := func() string {
		return browsertest.Eval[string](tab, `document.querySelector('.journey').innerText`)
	}
	travelled, alerts := journey(), attention()

	tab.Find("button", "Move to QA").Click()
	tab.WaitText("Moved to QA.")
	tab.WaitText("Current → QA")
	if journey() == travelled {
		t.Error("the journey does not show the move")
	}
	tab.Find("button", "Undo").Click()
	tab.WaitText("Moved to Current.")
	tab.WaitText("QA → Current")
	tab.Wait(inCurrent)
	if got := journey(); got != travelled {
		t.Errorf("the journey is\n%s\nand was\n%s", got, travelled)
	}
	if got := attention(); got != alerts {
		t.Errorf("what needs attention is %s and was %s", got, alerts)
	}
	tab.Goto(up.url + "/")
	tab.WaitText("Stuck in shop · Current")
}
