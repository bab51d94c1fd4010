package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
)

// travels records the start of each animation of a wagon, relative to its end.
const travels = `window.travels = []
	const animate = Element.prototype.animate
	Element.prototype.animate = function (frames, options) {
		window.travels.push(this.textContent.trim().split(' ')[0] + ' ' + Math.sign(parseFloat(frames.transform[0].slice(10))) + ' ' + options.duration)
		return animate.call(this, frames, options)
	}
	true`

// TestAWagonTravelsWhenItsStoryMoves to its new station, from the backlog, and to the count of finished stories.
func TestAWagonTravelsWhenItsStoryMoves(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog: 7_story_idea", "2_current: 14_story_login, 9_story_search", "3_qa: 5_story_sort", "5_done:"))
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/")
	tab.Wait(`document.querySelectorAll('.wagon').length === 3`)
	browsertest.Eval[bool](tab, travels)
	s.move("alpha", "14_story_login", "2_current", "3_qa", time.Now())
	s.boards.set("alpha", board("1_backlog: 7_story_idea", "2_current: 9_story_search", "3_qa: 5_story_sort, 14_story_login", "5_done:"))
	refresh(tab)
	tab.Wait(`window.travels.join() === '14 -1 300'`)
	s.move("alpha", "5_story_sort", "3_qa", "5_done", time.Now())
	s.boards.set("alpha", board("1_backlog: 7_story_idea", "2_current: 9_story_search", "3_qa: 14_story_login", "5_done: 5_story_sort"))
	refresh(tab)
	tab.Wait(`window.travels.join() === '14 -1 300,5 1 300'`)
	tab.Wait(`!document.querySelector('.ghost')`)
	s.move("alpha", "7_story_idea", "1_backlog", "2_current", time.Now())
	s.boards.set("alpha", board("1_backlog:", "2_current: 9_story_search, 7_story_idea", "3_qa: 14_story_login", "5_done: 5_story_sort"))
	refresh(tab)
	tab.Wait(`window.travels.join() === '14 -1 300,5 1 300,7 -1 300'`)

	tab.Media("prefers-reduced-motion", "reduce")
	s.move("alpha", "14_story_login", "3_qa", "5_done", time.Now())
	s.boards.set("alpha", board("1_backlog:", "2_current: 9_story_search, 7_story_idea", "3_qa:", "5_done: 5_story_sort, 14_story_login"))
	refresh(tab)
	tab.Wait(`document.querySelectorAll('.wagon').length === 2`)
	if got := browsertest.Eval[int](tab, `window.travels.length`); got != 3 {
		t.Errorf("to those who want no motion a wagon has travelled: %d", got)
	}
}

// TestARefreshShiftsNothing: unchanged content does not move, not even for a moment.
func TestARefreshShiftsNothing(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	for _, name := range []string{"alpha", "beta"} {
		s.add(name, board("1_backlog:", "2_current: 14_story_login", "3_qa:", "5_done:"))
	}
	tab := browsertest.Open(t)
	tab.Media("prefers-reduced-motion", "reduce")
	tab.Goto(s.URL + "/")
	tab.Find("heading", "Overview")
	browsertest.Eval[bool](tab, `window.shifts = [], new PerformanceObserver(list => {
		for (const entry of list.getEntries())
			for (const {node, previousRect, currentRect} of entry.sources)
				window.shifts.push((node?.outerHTML ?? node?.textContent ?? 'what has gone') + ' from ' + JSON.stringify(previousRect) + ' to ' + JSON.stringify(currentRect))
	}).observe({type: 'layout-shift', buffered: false}), true`)
	for _, story := range []string{"97_story_one", "98_story_two"} {
		s.boards.set("alpha", board("1_backlog:", "2_current: "+story, "3_qa:", "5_done:"))
		s.boards.set("beta", board("1_backlog:", "2_current:", "3_qa: "+story, "5_done:"))
		refresh(tab)
		tab.Wait(`document.querySelector('.wagon[href*="` + story + `"]')`)
	}
	browsertest.Eval[bool](tab, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
	for _, shift := range browsertest.Eval[[]string](tab, `window.shifts`) {
		t.Errorf("shifted: %s", shift)
	}
}

// TestTheGridOfLargeBoardsStaysWhereItIs while stories move, finish, and are blocked and unblocked: 0.1 is the layout shift that
// readers do not mind.
func TestTheGridOfLargeBoardsStaysWhereItIs(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	names := []string{"alpha", "beta", "gamma"}
	boards := map[string][]domain.Stage{}
	for i, name := range names {
		list := make([]string, 5)
		for j := range 2500 {
			list[j%5] += fmt.Sprintf(", %d_story_of_%s", j, name)
		}
		boards[name] = board("1_backlog:"+list[0], "2_current:"+list[1], "3_qa:"+list[2], "4_merge:"+list[3], "5_done:"+list[4])
		boards[name][i%3+1].Items[0].Blocked = "why"
		s.add(name, boards[name])
	}
	tab := browsertest.Open(t)
	tab.Media("prefers-reduced-motion", "reduce")
	tab.Goto(s.URL + "/")
	tab.Find("heading", "Overview")
	browsertest.Eval[bool](tab, `window.shifted = [], window.shift = 0, new PerformanceObserver(list => {
		for (const { value, sources } of list.getEntries())
			if (sources.some(({ node }) => node?.parentElement?.closest('.grid-table'))) window.shift += value, window.shifted.push(value + sources.map(({ node, previousRect: a, currentRect: b }) => `+"`${node?.outerHTML?.slice(0, 120)} ${JSON.stringify(a)} ${JSON.stringify(b)}`"+`).join('\n'))
	}).observe({type: 'layout-shift', buffered: false}), true`)
	for turn := range 9 {
		name := names[turn%len(names)]
		stages := slices.Clone(boards[name])
		for i := len(stages) - 1; i > 0; i-- {
			from, to := &stages[i-1], &stages[i]
			story := from.Items[0]
			story.Blocked, story.Since = "", time.Now()
			if i == turn%3+1 {
				story.Blocked = "why"
			}
			from.Items, to.Items = from.Items[1:], append(slices.Clone(to.Items), story)
			s.move(name, story.StoryID, from.Name, to.Name, time.Now())
		}
		boards[name] = stages
		s.boards.set(name, stages)
		refresh(tab)
		tab.Wait(fmt.Sprintf(`document.querySelector('#project-%s .last .load').textContent === '%d'`, name, len(stages[4].Items)))
	}
	browsertest.Eval[bool](tab, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
	if shift := browsertest.Eval[float64](tab, `window.shift`); shift > 0.1 {
		t.Errorf("the grid shifts by %.3f %s", shift, browsertest.Eval[[]string](tab, "window.shifted"))
	}
}

func TestKeysWalkThroughLists(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/")
	tab.Find("heading", "Overview")
	at := func() string { return browsertest.Eval[string](tab, `document.activeElement.textContent.trim()`) }
	tab.Keys("j")
	first := at()
	tab.Keys("j")
	if second := at(); second == first || second == "" {
		t.Errorf("from %q to %q", first, second)
	}
	tab.Keys("k")
	if back := at(); back != first {
		t.Errorf("back at %q, not at %q", back, first)
	}
	tab.Keys("k" + kb.Enter) // the first is the first
	tab.Wait(`location.pathname !== '/'`)

	// A wagon in focus has a tooltip with its full text and what its agent said last, above its list; Escape closes it.
	agent := s.join("builder-1")
	if _, err := s.Agents.Assign(t.Context(), agent.ID, "alpha"); err != nil {
		t.Fatal(err)
	}
	s.says(agent, domain.AgentRunning, "14_story_login\nfour tests pass")
	tab.Goto(s.URL + "/")
	wagon := tab.Find("link", "")
	tab.Wait(`document.querySelector('.wagon.going')`)
	wagon.Call(`function() { document.querySelector('.wagon.going').focus() }`)
	tab.Wait(`document.querySelector('#tip:popover-open')?.textContent.endsWith('four tests pass')`)
	wagon.Call(`function() { document.querySelector('.wagon').focus() }`)
	tab.Wait(`document.querySelector('#tip:popover-open')?.textContent.includes('in this stage for')`)
	if covers := browsertest.Eval[bool](tab, `document.getElementById('tip').getBoundingClientRect().bottom > document.querySelector('.wagon').getBoundingClientRect().top`); covers {
		t.Error("the tooltip covers the wagon")
	}
	if behind := browsertest.Eval[string](tab, `getComputedStyle(document.getElementById('tip'), '::backdrop').backgroundColor`); behind != "rgba(0, 0, 0, 0)" {
		t.Errorf("the page behind the tooltip gets the colour %s", behind)
	}
	tab.Keys(kb.Escape)
	tab.Wait(`!document.querySelector('#tip:popover-open')`)
}

// TestAPageSaysHowItIsWithTheGateway: whether a request is under way, since when there is no answer, and how many events wait
// while the page is paused.
func TestAPageSaysHowItIsWithTheGateway(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	var lost, slow atomic.Bool
	release := make(chan struct{})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lost.Load() {
			panic(http.ErrAbortHandler)
		}
		if slow.Load() && r.URL.Query().Get("q") != "" {
			<-release
		}
		s.Server.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	tab := browsertest.Open(t)
	tab.Goto(front.URL + "/")
	slow.Store(true)
	tab.Find("searchbox", "Filter projects").Type("alp")
	tab.Wait(`document.documentElement.hasAttribute('data-busy')`)
	close(release)
	tab.Wait(`!document.documentElement.hasAttribute('data-busy')`)

	tab.Goto(front.URL + "/events")
	tab.Find("button", "Pause").Click()
	tab.WaitText("paused")
	s.move("alpha", "901_story", "2_current", "3_qa", time.Now())
	s.move("alpha", "902_story", "2_current", "3_qa", time.Now())
	refresh(tab)
	tab.WaitText("paused, 2 new")
	if browsertest.Eval[bool](tab, `document.body.innerText.includes('901')`) {
		t.Error("a paused page has changed")
	}
	tab.Find("button", "Resume").Click()
	tab.WaitText("902")

	lost.Store(true)
	refresh(tab)
	tab.Wait(`/This page is as of \d\d:\d\d and/.test(document.getElementById('lost').innerText)`)
	tab.Wait(`getComputedStyle(document.querySelector('main')).filter.includes('opacity')`)
	lost.Store(false)
	tab.Wait(`document.getElementById('lost').hidden && getComputedStyle(document.querySelector('main')).filter === 'none'`)
	tab.Complaints() // the lost connections
}

// TestTheWorstTroubleComesFirst: halted stories come before slow ones, whatever moved last; stale answers are no trouble.
func TestTheWorstTroubleComesFirst(t *testing.T) {
	s := newConsoleSite(t)
	at := func(stages []domain.Stage, hours int) []domain.Stage {
		stages[1].Items[0].Since = time.Now().Add(-time.Duration(hours) * time.Hour)
		return stages
	}
	s.add("moved", at(board("1_backlog:", "2_current: 1_story_a", "3_done:"), 1))
	s.add("stuck", at(board("1_backlog:", "2_current: 1_story_a", "3_done:"), 30))
	s.add("still", at(board("1_backlog:", "2_current: 1_story_a!no key", "3_done:"), 40))
	s.Get("/").WantText(t, `id="project-still"`, `id="project-stuck"`, `id="project-moved"`)
}

// TestALineOfTheInboxOpensItsStoryOnAPhone wherever it is tapped, except on its acknowledge button.
func TestALineOfTheInboxOpensItsStoryOnAPhone(t *testing.T) {
	browsertest.Parallel(t)
	s := inboxSite(t)
	tab := browsertest.Open(t)
	tab.Phone()
	tab.Goto(s.URL + "/")
	at := func(x, y string) string {
		return browsertest.Eval[string](tab, `(() => {
			const box = document.querySelector('.inbox li').getBoundingClientRect()
			const hit = document.elementFromPoint(`+x+`, `+y+`)
			return (hit.closest('a')?.pathname ?? hit.textContent).trim()
		})()`)
	}
	if got := at("box.left + 4", "box.bottom - 4"); !strings.HasPrefix(got, "/projects/webshop/stories/") {
		t.Errorf("the line leads to %q", got)
	}
	if got := at("box.right - 30", "box.top + 44"); got != "Acknowledge" {
		t.Errorf("its mark is %q", got)
	}
	if wide := browsertest.Eval[bool](tab, `document.documentElement.scrollWidth > innerWidth`); wide {
		t.Error("the page is wider than the phone")
	}
}
