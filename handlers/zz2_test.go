package handlers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
)

func TestZZWide(t *testing.T) {
	s := newConsoleSite(t)
	word := strings.Repeat("x", 90)
	s.add(word, board("1_backlog:", "2_current: 1_story_"+word+"!"+word, "3_qa: 2_story_b?"+word, "4_merge: 3_story_c", "5_done:", "6_archived:"))
	s.add("beta", board("1_backlog:", "2_current: 14_story_log_in_with_a_passkey_or_a_token!"+strings.Repeat("why ", 80), "3_qa: 12_story_b", "4_merge: 9_story_c", "5_done:"))
	s.add("gamma", nil)
	s.record(word, fmt.Sprintf(`{"type":"merge_failure","story_id":"1_story_%s","story_name":%q,"reason":%q,"timestamp_ms":%d}`, word, word, word, time.Now().UnixMilli()))
	s.says(s.join(word), domain.AgentFailed, word)
	s.join("builder-1")
	tab := browsertest.Open(t)
	tab.Size(360, 900)
	tab.Goto(s.url + "/")
	t.Log(browsertest.Eval[string](tab, `document.documentElement.scrollWidth + [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > 361).map(e => e.outerHTML.slice(0,150) + getComputedStyle(e).display + e.getBoundingClientRect().left + ' ' + e.getBoundingClientRect().right).join("\n")`))
}
