package console_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/waittest"
	"switchyard/internal/wire"
)

// branchBoard is a project server whose story 7_pay has work on a branch.
type branchBoard struct {
	mu        sync.Mutex
	stage     string
	head      string
	conflicts []string
	merges    bool
	failure   *string
	asked     []string // the queries for changes
	merge     func(w http.ResponseWriter)
	since     int64
	ahead     int
	huge      string // more of the text of a.go
}

const payPage = "/projects/shop/stories/7_pay"

func (b *branchBoard) story() map[string]any {
	return map[string]any{
		"project": "shop", "story_id": "7_pay", "story_name": "Pay by card", "stage": b.stage, "since_ms": b.since, "version": "v" + b.stage, "writable": true,
		"merges": b.merges, "merge_failure": b.failure, "body": "Cards, too.", "path": b.stage + "/7_pay.md", "front_matter": map[string]any{},
		"worktree": "/trees/7 pay", "branch": "story/7_pay", "base_stage": "1_backlog", "work": []any{
			map[string]any{
				"branch": "story/7_pay", "worktree": "/trees/7 pay", "head": b.head, "ahead": b.ahead, "behind": 9, "files": 4, "added": 9, "removed": 3, "uncommitted": 2,
				"author": "agent-2", "at_ms": time.Now().Add(-time.Hour).UnixMilli(), "conflicts": b.conflicts, "link": "moved", "stage": b.stage,
			},
			map[string]any{"branch": "spike/card", "head": "5555555555", "ahead": 1, "conflicts": []string{}, "link": "commit", "at_ms": 5, "author": "Jonas"},
		},
	}
}

const payDiff = `diff --git a/internal/pay/card.go b/internal/pay/intent.go
similarity index 60%
rename from internal/pay/card.go
rename to internal/pay/intent.go
--- a/internal/pay/card.go
+++ b/internal/pay/intent.go
@@ -14,4 +14,5 @@ package pay
 type Intent struct {
-	Amount int64
+	Amount money.Amount
+	// <script>alert(1)</script> ` + "\u202e" + `
 }
`

func (b *branchBoard) changes() wire.Changes {
	text := "diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-old\n+new\n" + b.huge
	return wire.Changes{
		Branch: new("story/7_pay"), Worktree: new("/trees/7 pay"), Base: "77b0d1e000000", Head: b.head, MergeBase: "1111111111", Ahead: 2, Behind: 9,
		Conflicts: b.conflicts, Commits: []wire.ChangesCommit{{Hash: b.head, Author: "agent-2", AtMS: time.Now().UnixMilli(), Subject: "Pay by <card>"}},
		Files: []wire.ChangedFile{
			{Path: "internal/pay/intent.go", From: new("internal/pay/card.go"), Status: "renamed", Added: new(2), Removed: new(1), ID: "id1", Bytes: 300},
			{Path: "big.min.js", Status: "modified", Added: new(1), Removed: new(1), ID: "id2", Bytes: 1 << 21, Cut: true},
			{Path: "a.go", Status: "modified", Added: new(1 + strings.Count(b.huge, "+")), Removed: new(1), ID: "id3", Bytes: len(text)},
			{Path: "logo.png", Status: "added", Binary: true, ID: "id4"},
		},
		Diff: payDiff + text + "diff --git a/logo.png b/logo.png\nBinary files differ\n", Cut: true,
		Uncommitted: wire.Uncommitted{
			Files: []wire.ChangedFile{{Path: "notes.txt", Status: "modified", Added: new(1), Removed: new(0), ID: "id5"}},
			Diff:  "diff --git a/notes.txt b/notes.txt\n@@ -1 +1,2 @@\n kept\n+not yet\n",
		},
		Untracked: []string{".env.local"},
	}
}

func newBranchSite(t testing.TB) (*consoleSite, *branchBoard) {
	t.Helper()
	s := newConsoleSiteWith(t, gatewaytest.NewProjectClient(t))
	b := &branchBoard{stage: "3_qa", head: "a41f9c2000000", conflicts: []string{}, merges: true, ahead: 2, since: time.Now().UnixMilli()}
	locked := func(h func(w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			b.mu.Lock()
			defer b.mu.Unlock()
			h(w, r)
		}
	}
	s.Add("shop", gatewaytest.ProjectServer(s, locked(func(w http.ResponseWriter, _ *http.Request) {
		stages := []any{}
		for _, name := range []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done"} {
			items := []any{}
			if name == b.stage {
				items = append(items, map[string]any{"story_id": "7_pay", "story_name": "Pay by card", "since_ms": b.since, "work": map[string]any{"branch": "story/7_pay", "ahead": b.ahead}})
			}
			stages = append(stages, map[string]any{"name": name, "items": items})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"project": "shop", "stages": stages, "branch": "main", "links": []any{map[string]any{"branch": "story/7_pay", "story_id": "7_pay"}}})
	}), func(mux *http.ServeMux) {
		mux.HandleFunc("GET /api/stories/7_pay", locked(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(b.story()) }))
		mux.HandleFunc("PATCH /api/stories/7_pay", locked(func(w http.ResponseWriter, r *http.Request) {
			var asked struct{ Stage string }
			_ = json.NewDecoder(r.Body).Decode(&asked)
			b.stage = asked.Stage
			_ = json.NewEncoder(w).Encode(b.story())
		}))
		mux.HandleFunc("GET /api/stories/7_pay/changes", locked(func(w http.ResponseWriter, r *http.Request) {
			b.asked = append(b.asked, r.URL.RawQuery)
			c := b.changes()
			if r.URL.Query().Get("path") != "" || r.URL.Query().Get("since") != "" {
				c.Files, c.Diff, c.Uncommitted = c.Files[2:3], c.Diff[len(payDiff):], wire.Uncommitted{}
			}
			_ = json.NewEncoder(w).Encode(c)
		}))
		mux.HandleFunc("POST /api/stories/7_pay/merge", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			b.merge(w)
		})
	}))
	s.Answered()
	return s, b
}

func (b *branchBoard) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func TestAStorysChangesAreShown(t *testing.T) {
	s, b := newBranchSite(t)
	b.huge = strings.Repeat("+x\n", 500)
	var page gatewaytest.Answer
	waittest.Until(t, "all is known of the story", func() bool {
		page = s.Get(payPage).WantStatus(t, http.StatusOK)
		return s.Get(partAddress(t, page), "HX-Request", "true").StatusCode == http.StatusNoContent
	})
	for _, text := range []string{
		"Changes <span class=\"n\">5 files</span>", `<span title="/trees/7 pay">in the work tree <bdi>7 pay</bdi></span>`, "<bdi>Backlog</bdi></b> on <bdi>main</bdi>",
		`<li class="past signal-none parts">`, "main\u00a0has\u00a0it\u00a0here", `<li class="past signal-none upper">`, `<li class="signal-none upper leaves" aria-current="step">`, `<li class="signal-none joins">`, "story/7_pay", "/trees/7 pay", "spike/card", "its commits name the story", "2 ahead, 9 behind", "no conflicts",
		"against <bdi>main</bdi> <code>77b0d1e000</code>", "and what is not committed", "Pay by &lt;card&gt;",
		"internal/pay/card.go", "renamed", "<del data-o=\"15\">-\tAmount <mark>int64</mark>", "<mark>money.Amount</mark>", "&lt;script&gt;alert(1)&lt;/script&gt; U+202E",
		"2,097,152 bytes: longer than what is shown", "git diff 1111111111 a41f9c2000 -- big.min.js", "Show its 502 lines", "A binary file", "+not yet", "Not committed: a merge would not take it.",
		".env.local", `href="#changes">Review</a>`, "For review", "moves it to <bdi>Merge</bdi>", "Merge: once it is approved",
	} {
		page.WantText(t, text)
	}
	page.WantNoText(t, "\u202e", "<script>alert", ">old<")
	if faults := markupFaults(page.Text); len(faults) > 0 {
		t.Error(faults)
	}
	s.Get(payPage+"?branch=story%2F7_pay&worktree=%2Ftrees%2F7+pay&file=a.go", "HX-Request", "true").WantText(t, `<del data-o="1">-old`).WantNoText(t, "<html", "intent.go")
	s.Get(payPage+"?file=a.go").WantText(t, `<del data-o="1">`).WantNoText(t, "<mark>int64</mark>") // opened without scripts
	s.Get(payPage + "?branch=spike%2Fcard")
	b.set(func() {
		if last := b.asked[len(b.asked)-1]; last != "branch=spike%2Fcard" {
			t.Error(last)
		}
		b.head = "f00ba12000000"
	})
	s.Get(partAddress(t, page), "HX-Request", "true").WantText(t, "New commits</b> since you opened this")
}

// TestAnIdleAgentsStoryIsForReview: Agents says so with what was changed, until somebody works on it.
func TestAnIdleAgentsStoryIsForReview(t *testing.T) {
	s, b := newBranchSite(t)
	heard := func(session, event string) {
		s.Sessions.Receive(t.Context(), domain.HookEvent{Name: event, Session: session, Project: "shop", Host: "h", Worktree: "/trees/7 pay", Branch: "story/7_pay"})
	}
	heard("rests", "Stop")
	s.Get("/agents").WantText(t, payPage+`#changes" class="link">for review</a>: 4 files`, "+9", "−3")
	b.set(func() { b.ahead = 0 })
	s.Get("/agents").WantText(t, "Pay by card").WantNoText(t, "for review")
	b.set(func() { b.ahead = 2 })
	heard("works", "PreToolUse")
	s.Get("/agents").WantText(t, "Pay by card").WantNoText(t, "for review")
}

func TestAVerdictOfThePage(t *testing.T) {
	s, b := newBranchSite(t)
	said := func(fields ...string) gatewaytest.Answer { return s.Submit(payPage, fields...) }
	said("do", "sent_back", "head", "a41f9c2000000", "note", " ").WantStatus(t, http.StatusBadRequest).WantText(t, "Not sent back: sending back needs a note")
	said("do", "sent_back", "head", "0123456789ab", "note", "say which\r\ncurrency").WantStatus(t, http.StatusConflict).
		WantText(t, "Not sent back: no branch or work tree of the story is at 0123456789 any more. Your note is kept.", "say which\ncurrency</textarea>")
	s.follow(said("do", "sent_back", "head", "a41f9c2000000", "note", "say which")).WantText(t, "Sent back: it is in Backlog now.", "Sent back by", "say which", "sent it back").
		WantNoText(t, `href="#changes">Review</a>`)
	b.set(func() { b.head, b.stage = "f00ba12000000", "3_qa" })
	s.Get(payPage).WantText(t, "For review again", "Since sent back <small>1</small>", "changed since", "Outdated: 1 commit since.")
	s.Get(payPage+"?since=a41f9c2000000").WantText(t, "after <code>a41f9c2000</code>", `<ins data-n="1">`)
	b.set(func() { b.conflicts = []string{"a.go", "go.mod"} })
	s.Get(payPage).WantText(t, "conflicts with main", "Merge: not while 2 files conflict", "<code><bdi>go.mod</bdi></code>").WantText(t, "Add the 2 conflicting files")
	b.set(func() { b.conflicts = []string{} })
	s.follow(said("do", "approved", "head", "f00ba12000000")).WantText(t, "Approved: it is in Merge now.", `value="merge">Merge</button>`, "Merge into <bdi>main</bdi></button>").
		WantNoText(t, "✓ Approve")
	b.set(func() { b.merges = false })
	s.Get(payPage).WantText(t, "Merge: its project server does not merge", "--allow-merges", "git merge --no-ff story/7_pay").WantNoText(t, `value="merge"`)
}

func TestAMergeOfThePage(t *testing.T) {
	s, b := newBranchSite(t)
	s.Submit(payPage, "do", "approved", "head", "a41f9c2000000")
	merge := func() gatewaytest.Answer {
		return s.follow(s.Submit(payPage, "do", "merge", "branch", "story/7_pay", "head", "a41f9c2000000"))
	}
	b.merge = func(w http.ResponseWriter) { http.Error(w, "DIR has changes in go.mod\nmore", http.StatusConflict) }
	merge().WantText(t, "Not merged: DIR has changes in go.mod.", "<strong>Not merged</strong>")
	let := make(chan struct{})
	b.merge = func(w http.ResponseWriter) {
		<-let
		b.set(func() { b.stage = "5_done" })
		fmt.Fprint(w, `{"merged":"5d20c11"}`)
	}
	ended := make(chan gatewaytest.Answer)
	go func() { ended <- merge() }()
	waittest.Until(t, "the page says that it is being merged", func() bool {
		return strings.Contains(s.Get(payPage).Text, "<strong>Being merged</strong>")
	})
	close(let)
	(<-ended).WantText(t, "Merged.").WantNoText(t, "Being merged", "Not merged")
	page, err := s.Audit.Page(t.Context(), domain.AuditQuery{Limit: 9, Action: domain.StoryMerged})
	if err != nil || len(page.Entries) != 1 || !strings.Contains(page.Entries[0].Detail, "stage: 4_merge → 5_done") {
		t.Errorf("%+v, %v", page.Entries, err)
	}
}

// TestBrowserChangesAreReadAndJudged with scripts by keys, and without any.
func TestBrowserChangesAreReadAndJudged(t *testing.T) {
	browsertest.Parallel(t)
	s, b := newBranchSite(t)
	b.huge = strings.Repeat("+x\n", 500)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + payPage)
	tab.Wait(`!document.querySelector('#file-3 pre')`)
	tab.Keys("j")
	tab.Wait(`document.activeElement.closest('.changes-file')?.id === 'file-1'`)
	tab.Keys("x")
	tab.WaitText("1 of 5")
	tab.Wait(`document.activeElement.closest('.changes-file')?.id === 'file-2'`)
	tab.Keys("j") // the lines of a file come when it is opened
	tab.Wait(`document.querySelectorAll('#file-3 pre ins').length === 501`)
	tab.Keys("c")
	tab.Wait(`document.querySelector('[data-note]').value === 'a.go:1 '`)
	tab.Find("textbox", "Note goes to whoever takes the story next; Send back needs one").Type("a.go:1 which currency?")
	tab.Goto(s.URL + payPage) // what was read and typed is kept
	tab.WaitText("1 of 5")
	tab.Wait(`document.querySelector('[data-note]').value === 'a.go:1 which currency?' && !document.querySelector('#file-1-lines').open`)
	tab.Find("button", "↩ Send back").Click()
	tab.WaitText("Sent back: it is in Backlog now.")
	tab.Scripts(false)
	b.set(func() { b.head = "f00ba12000000" })
	tab.Goto(s.URL + payPage)
	tab.Find("button", "✓ Approve").Click()
	tab.WaitText("Approved: it is in Current now.")
}

func TestBrowserChangesFitAnyWindow(t *testing.T) {
	browsertest.Parallel(t)
	s, b := newBranchSite(t)
	b.conflicts = []string{"a.go"}
	s.Submit(payPage, "do", "sent_back", "head", b.head, "note", "W"+strings.Repeat("W", 300))
	b.set(func() { b.head = "f00ba12000000" })
	tab := browsertest.Open(t)
	for _, theme := range []string{"light", "dark"} {
		tab.Media("prefers-color-scheme", theme)
		tab.Goto(s.URL + payPage)
		tab.AccessibleAt(360, 768, 1280, 2560)
	}
}
