package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/waittest"
)

// TestQuestionsAreNotAskedWithoutEnd: whoever withdraws each at once would fill the database.
func TestQuestionsAreNotAskedWithoutEnd(t *testing.T) {
	s := newTokenSite(t)
	s.assign("alpha")
	agent := asker(s.Site, s.issue("alpha"))
	const address = "/api/gateway/questions"
	for range domain.AllowedQuestions.Ended {
		asked, q := agent("POST", address, `{"kind":"text","prompt":"Which?"}`)
		asked.WantStatus(t, http.StatusCreated)
		if a, _ := agent("DELETE", address+"/"+q.ID, ""); a.StatusCode != http.StatusNoContent {
			t.Fatalf("withdrawing: %d", a.StatusCode)
		}
	}
	asked, _ := agent("POST", address, `{"kind":"text","prompt":"Which?"}`)
	asked.WantStatus(t, http.StatusTooManyRequests).WantText(t, "ask more slowly")
	_, token := gatewaytest.NamedToken(t, s.Service, "mara", domain.RoleOperator)
	other, _ := asker(s.Site, token)("POST", address, `{"kind":"text","prompt":"Which?"}`)
	other.WantStatus(t, http.StatusCreated)
}

// TestASearchForWhatIsAlmostThereIsCheap: names that differ from what is searched for at their ends only take longest.
func TestASearchForWhatIsAlmostThereIsCheap(t *testing.T) {
	const stories = 20_000
	items := make([]string, stories)
	for i := range items {
		items[i] = fmt.Sprintf(`{"story_id":"s%d","story_name":"%s%s"}`, i, strings.Repeat("a", 148), strings.Repeat("c", 100))
	}
	s := newSite(t)
	s.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(
		`{"stages":[{"name":"1_backlog","items":[`+strings.Join(items, ",")+`]}]}`)))
	waittest.Until(t, "its stories", func() bool {
		return strings.Contains(s.Get("/api/gateway/search?q=s19999").Text, `"s19999"`)
	})
	almost, other := strings.Repeat("a", 148)+strings.Repeat("b", 51), "q"
	took := map[string]time.Duration{almost: time.Hour, other: time.Hour} // the shortest of three: the machine may be busy
	for range 3 {
		for q, shortest := range took {
			began := time.Now()
			s.Get("/api/gateway/search?q="+q).WantText(t, `"stories":[]`)
			took[q] = min(shortest, time.Since(began))
		}
	}
	if ratio := took[almost] / took[other]; ratio > 30 { // 5; comparing each letter with each of all names: 170
		t.Errorf("took %v, %d times as long as another search", took[almost], ratio)
	}
}

// TestATotalThatCannotBeIsNone: those of two projects would add up to a negative number.
func TestATotalThatCannotBeIsNone(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"alpha", "beta"} {
		s.Add(name, gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText), func(mux *http.ServeMux) {
			mux.HandleFunc("/api/search", gatewaytest.Says(`{"texts":[],"total":9223372036854775807}`))
		}))
	}
	s.Answered()
	s.Get("/api/gateway/search?q=nothing&texts=true").WantText(t, `"texts":40000}`)
}
