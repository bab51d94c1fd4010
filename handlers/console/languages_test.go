package console_test

import (
	"strings"
	"testing"
	"time"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
)

// astray returns what stands wrong on a page of texts in a script that runs from right to left: one that is not isolated
// from the text beside it, and one that is cut where it begins.
const astray = `(() => {
	const wrong = [], walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
	const isolates = (e) => /isolate|plaintext/.test(getComputedStyle(e).unicodeBidi) || e.matches('bdi, [dir]')
	for (let node; (node = walk.nextNode()); ) {
		const at = node.textContent.search(/[\u0590-\u08ff]/)
		let e = node.parentElement
		if (at < 0 || !e.checkVisibility() || e.closest('option, select, .sr-only, title')) continue
		const letter = document.createRange()
		letter.setStart(node, at)
		letter.setEnd(node, at + 1)
		const first = letter.getBoundingClientRect()
		if (first.width === 0) continue
		if (/^\P{L}*$/u.test(node.textContent.slice(0, at)))
		for (let box = e; box.tagName !== 'MAIN'; box = box.parentElement) {
			const within = box.getBoundingClientRect()
			if (getComputedStyle(box).overflowX !== 'visible' && (first.left < within.left - 1 || first.right > within.right + 1)) {
				wrong.push('cut where it begins: ' + node.textContent.trim().slice(0, 30) + ' in ' + e.outerHTML.slice(0, 90))
				break
			}
		}
		while (getComputedStyle(e).display === 'inline' && !isolates(e)) e = e.parentElement
		if (!isolates(e) && e.textContent.trim() !== node.textContent.trim()) wrong.push('not isolated: ' + node.textContent.trim().slice(0, 30) + ' in ' + e.outerHTML.slice(0, 120))
	}
	return wrong.slice(0, 5).join('\n')
})()`

// TestTextsFromRightToLeftKeepTheirPlace on every page: each is isolated, its number stands before it, what is cut off is
// its end, and lists stay aligned.
func TestTextsFromRightToLeftKeepTheirPlace(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	const project, story = "متجر", "14_story_prices"
	const name = "عرض الأسعار بالدينار الكويتي مع ثلاث خانات عشرية في كل صفحة من صفحات المتجر وفي كل رسالة"
	stages := board("1_backlog:", "2_current: "+story, "3_qa: 15_story_mail", "4_done: 16_story_old")
	for i := range stages {
		for k := range stages[i].Items {
			stages[i].Items[k].StoryName = name
		}
	}
	stages[1].Items[0].Blocked = "أي مزود خدمة نستخدم؟"
	stages[2].Items[0].Since = time.Now().Add(-30 * time.Hour)
	s.add(project, stages)
	s.Record(project, strings.ReplaceAll(moved(story, "1_backlog", "2_current", time.Now().Add(-time.Hour)), `"story_name":"`, `"story_name":"`+name))
	agent := s.join("عامل-1")
	s.Submit("/agents/"+agent.ID+"/assign", "project", project)
	s.says(agent, domain.AgentRunning, "أعمل على "+story)
	s.asks(domain.Question{Project: project, StoryID: story, Kind: domain.QuestionText, Prompt: "أي مزود خدمة نستخدم؟"})
	tab := browsertest.Open(t)
	for _, width := range []int64{1280, 360} {
		tab.Size(width, 900)
		for _, path := range []string{
			"/", "/projects", "/projects/" + project, "/projects/" + project + "/stories/" + story, "/agents", "/events", "/waiting", "/flow",
			"/search?q=عرض", "/questions", "/audit",
		} {
			tab.Goto(s.URL + path)
			if got := browsertest.Eval[string](tab, astray); got != "" {
				t.Errorf("%s at %d px: %s", path, width, got)
			}
		}
	}
	tab.Size(1280, 900)
	tab.Goto(s.URL + "/agents")
	if off := browsertest.Eval[float64](tab, `(() => {
		const [title, place] = [...document.querySelectorAll('.agent-lines .work > *')].map((e) => {
			const range = document.createRange()
			range.selectNodeContents(e)
			return range.getBoundingClientRect().left - e.getBoundingClientRect().left
		})
		return Math.max(title, place)
	})()`); off > 4 {
		t.Errorf("on the page of agents the place of a story begins %v px from the left", off)
	}
	tab.Goto(s.URL + "/")
	if !browsertest.Eval[bool](tab, `[...document.querySelectorAll('.wagon')].every((w) => w.querySelector('.text-muted').getBoundingClientRect().right <= w.querySelector('b').getBoundingClientRect().left)`) {
		t.Error("the number of a wagon is not before its title")
	}
}

// TestTextOfTwiceTheSizeFits: all of it grows, and the header holds what is in it.
func TestTextOfTwiceTheSizeFits(t *testing.T) {
	browsertest.Parallel(t)
	s := inboxSite(t)
	tab := browsertest.Open(t)
	tab.Letters(32)
	for _, size := range [][2]int64{{720, 1280}, {1280, 800}, {1920, 1080}} {
		tab.Size(size[0], size[1])
		for _, path := range []string{"/", "/projects/webshop"} {
			tab.Goto(s.URL + path)
			if got := browsertest.Eval[string](tab, `(() => {
				const wrong = [], top = document.querySelector('.top').getBoundingClientRect()
				for (const e of document.querySelectorAll('.bar > *, .brand span, .tools > *, nav[aria-label=Pages] a')) {
					const box = e.getBoundingClientRect()
					if (box.width < 2 || box.top > 200) continue // not there, or at the bottom
					if (box.right > innerWidth + 1 || box.bottom > top.bottom + 1) wrong.push('out of the header: ' + e.outerHTML.slice(0, 90))
				}
				for (const e of document.querySelectorAll('.brand span, .count, .facts dd, .wagon b, .card .title, h2, .crumbs a')) {
					if (e.getClientRects().length && parseFloat(getComputedStyle(e).fontSize) < 24) wrong.push('small: ' + e.outerHTML.slice(0, 90))
				}
				if (document.documentElement.scrollWidth > innerWidth) wrong.push(document.documentElement.scrollWidth + ' px wide')
				return wrong.join('\n')
			})()`); got != "" {
				t.Errorf("%s at %d px: %s", path, size[0], got)
			}
		}
	}
}

// TestLongWordsAndLabelsFitAPhone: no word leaves the card of its question, and the box of a label stands at its first line.
func TestLongWordsAndLabelsFitAPhone(t *testing.T) {
	browsertest.Parallel(t)
	s := inboxSite(t)
	word := strings.Repeat("Donaudampfschifffahrtsgesellschaft", 3)
	s.asks(domain.Question{Project: "webshop", StoryID: "14_story_login", Kind: domain.QuestionChoice, Prompt: "Which " + word + "?", Options: []string{word, "Other"}, Detail: word})
	s.asks(domain.Question{Kind: domain.QuestionPermission, Prompt: "may I", Tool: &domain.ToolUse{Name: "Bash", Input: []byte(`{"command":"` + word + `"}`)}})
	tab := browsertest.Open(t)
	tab.Phone()
	tab.Goto(s.URL + "/questions")
	if got := browsertest.Eval[string](tab, `[...document.querySelectorAll('.question')].flatMap((card) => {
		const right = card.getBoundingClientRect().right
		return [...card.querySelectorAll('*')].filter((e) => e.checkVisibility() && (e.getBoundingClientRect().right > right || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'visible'))
	}).map((e) => e.outerHTML.slice(0, 90)).join('\n')`); got != "" || !strings.Contains(browsertest.Eval[string](tab, `document.querySelector('.question').innerText`), word) {
		t.Errorf("words leave their card, or it has none: %s", got)
	}
	tab.Goto(s.URL + "/notifications?kind=mail")
	off := browsertest.Eval[float64](tab, `Math.max(...[...document.querySelectorAll('label:has(> [type=checkbox])')].filter((label) => label.checkVisibility()).map((label) => {
		const range = document.createRange(), box = label.querySelector('input').getBoundingClientRect()
		range.selectNodeContents(label)
		const line = [...range.getClientRects()].filter((at) => at.left >= box.right - 1).sort((a, b) => a.height - b.height)[0]
		return Math.abs((box.top + box.bottom) / 2 - (line.top + line.bottom) / 2)
	}))`)
	if off > 5 {
		t.Errorf("a box is %v px off its first line", off)
	}
}
