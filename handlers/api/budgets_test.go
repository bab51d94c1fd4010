package api_test

import (
	"fmt"
	"slices"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

// TestPassedBudgetsNeedAttentionAndStopClaims: of a story, and of a project's day.
func TestPassedBudgetsNeedAttentionAndStopClaims(t *testing.T) {
	s := newUsageSite(t, service.Options{Budgets: domain.Budgets{Story: 12_000_000, Day: 20_000_000, Stop: true}})
	_, operator := gatewaytest.NamedToken(t, s.Service, "builder", domain.RoleOperator)
	builder, other := []string{"Authorization", "Bearer " + operator}, asAdmin
	n := 0
	spend := func(usd string) {
		t.Helper()
		n++
		body := fmt.Sprintf(`{"id":"%d","client":"mine","model":"m","usd":%s,"project":"webshop","story_id":"12_story_pay"}`, n, usd)
		s.Send("POST", "/api/gateway/usage", body, builder...).WantStatus(t, 201)
	}
	over := func() (found []string) {
		t.Helper()
		var got struct {
			Items []struct {
				Kind, Text   string
				Acknowledged *struct{ By string }
			}
		}
		s.Send("GET", "/api/gateway/attention", "", asAdmin...).WantStatus(t, 200).Decode(t, &got)
		for _, a := range got.Items {
			if a.Kind == "over_budget" && a.Acknowledged == nil {
				found = append(found, a.Text)
			}
		}
		return found
	}
	want := func(what string, texts ...string) {
		t.Helper()
		if found := over(); !slices.Equal(found, texts) {
			t.Errorf("%s: %q, want %q", what, found, texts)
		}
	}
	claim := func(who []string, body string, status int) {
		t.Helper()
		s.Send("POST", "/api/gateway/projects/webshop/stories/claim", body, who...).WantStatus(t, status)
	}
	take := func(key string) {
		t.Helper()
		s.Send("POST", "/api/gateway/attention/acknowledge", `{"key":"`+key+`"}`, asAdmin...).WantStatus(t, 200)
	}
	const next, again = `{"resume":false,"look":true}`, `{"resume":true}`
	claim(builder, `{"story_id":"12_story_pay"}`, 200)
	spend("12")
	want("what is not more than the budget")
	spend("0.004")
	const of = "story 12_story_pay of webshop is over its budget: "
	want("a story", of+"$12.004 of $12.00 for a story, at list price. builder ends what it does, then gets nothing new in webshop")
	claim(builder, next, 204)
	claim(builder, again, 200)
	s.Send("POST", "/mcp", callTool("claim_story", `{"project":"webshop","wait":"0s","resume":false}`),
		append(builder, "Accept", "application/json, text/event-stream")...).WantText(t, `\"story\":null`, "builder ends what it does")
	claim(other, next, 200)
	spend("1")
	take("over_budget/webshop/12_story_pay")
	spend("6.996")
	want("an acknowledged story that costs more, and a day's budget that is reached")
	claim(builder, next, 200)
	spend("1.5")
	want("a day", "project webshop is over its budget of the day: $21.50 of $20.00 for a day, at list price. Nobody gets anything new in webshop")
	claim(other, next, 204)
	take("over_budget/webshop")
	claim(other, next, 200)
	s.Send("POST", "/api/gateway/attention/reopen", `{"key":"over_budget/webshop/12_story_pay"}`, asAdmin...).WantStatus(t, 200)
	want("a story that is no longer acknowledged", of+"$21.50 of $12.00 for a story, at list price. builder ends what it does, then gets nothing new in webshop")
	s.Send("PATCH", "/api/gateway/projects/webshop/stories/12_story_pay", `{"version":"v","stage":"5_done"}`, builder...).WantStatus(t, 200)
	waittest.Until(t, "the alert of a story that is done ends", func() bool { return len(over()) == 0 })
}
