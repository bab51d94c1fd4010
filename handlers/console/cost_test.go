package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

// TestPagesSayWhatStoriesCost: Flow, the story's page, Agents and the overview, each at list price.
func TestPagesSayWhatStoriesCost(t *testing.T) {
	b := &boards{pipelines: map[string][]domain.Stage{}}
	o := service.Options{Projects: b, Stories: b, Log: logOf(t), Budgets: domain.Budgets{Story: 12_000_000, Day: 20_000_000, Stop: true}}
	s := &consoleSite{gatewaytest.NewSite(t, o, handlers.Gateway{}), b}
	s.Get("/flow").WantText(t, "Nothing is measured yet", "switchyard hook settings")
	s.add("webshop", board("1_backlog: 1_story_search", "2_current: 2_story_login", "5_done:"))
	s.Answered()
	var records []string
	now := time.Now()
	spend := func(id string, usd domain.Micros, model string, at time.Time) {
		t.Helper()
		c := domain.Call{
			Key: fmt.Sprint(id, usd, at, model), At: at, Client: "codex", Session: "s", Model: model, Project: "webshop", StoryID: id,
			Tokens: domain.Tokens{Input: 1000, CacheRead: 20_000}, Stated: &usd,
		}
		if usd == 0 {
			c.Stated = nil
		}
		if _, err := s.Costs.RecordOne(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		id := fmt.Sprintf("%d_story_done", 100+i)
		records = append(records, moved(id, "1_backlog", "2_current", now.Add(-3*time.Hour)), moved(id, "2_current", "5_done", now.Add(-2*time.Hour)))
		spend(id, domain.Micros(i+1)*1_000_000, "opus", now.Add(-150*time.Minute))
	}
	s.Record("webshop", records...)
	spend("2_story_login", 13_400_000, "opus", now)
	spend("2_story_login", 0, "gpt", now)
	spend("", 500_000, "opus", now)
	agent := s.join("loco")
	spent := domain.Micros(1_200_000)
	ctx := domain.WithActor(t.Context(), &domain.Actor{Who: "loco", Account: "agent " + agent.ID, AgentID: agent.ID})
	call := domain.Call{Key: "1", Client: "codex", Model: "opus", Stated: &spent, Project: "webshop", StoryID: "1_story_search"}
	if _, err := s.Costs.RecordOne(ctx, call); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "today on the page of agents", func() bool { return strings.Contains(s.Get("/agents").Text, ">Today<") })
	s.Get("/agents").WantText(t, "list price", "<b>$1.20</b>, 1 call today")
	const list = "at list price"
	flow := s.Get("/flow")
	for _, text := range []string{
		list, "Half of the 12 stories finished cost $6.00 or less, ", "85 % $11.00 or less.", "All in all $93.10", "Of the last ten half cost $7.00 or less.", "85 % cost up to",
		">$13.40<", "over $12.00", "1 unpriced", ">$12.00<", "over 85 %", "Without a story: 1 session", "no price",
		"Give it a price", "&#34;gpt&#34; = {input", ">111 story done</text>",
		"1 story costs more than $12.00", ", and it is not finished.", " · in Current",
	} {
		flow.WantText(t, text)
	}
	s.Get("/api/gateway/cost?project=webshop").WantText(t, `"finished":{"count":12,"mean":6.5,"p50":6,"p85":11}`)
	flow.WantNoText(t, ">110 story done</text>") // which is within the usual
	s.Get("/flow?project=webshop&tz=UTC").WantText(t, "On 1 day it passed its $20.00.", ", over $20.00")
	s.Get("/flow?project=webshop&tz=Asia/Kathmandu").WantNoText(t, "it passed its")
	s.Get("/projects/webshop/stories/2_story_login").WantText(t, "$13.40 <", list, "Over budget", "$13.40 of $12.00 for a story",
		"Let it go on", list, ">$13.40<", "2 calls, 1 session, 42 k tokens",
		"more than 85 % of stories", "Half of the 12 finished stories cost ", "$6.00 or less, 85 % $11.00.", "1 call has no price")
	s.Get("/").WantText(t, "Over budget in webshop · Current", "$13.40 of $12.00 for a story, at list price", "Let it go on")
	s.Get("/projects/webshop/stories/1_story_search").WantText(t, ">$1.20<").WantNoText(t, "Over budget", "more than 85 %")
	s.add("few", board("1_backlog: 1_one 2_two"))
	s.Answered()
	for id, usd := range map[string]domain.Micros{"1_one": 800_000, "2_two": 200_000} {
		call = domain.Call{Key: id, Client: "codex", Model: "opus", Stated: &usd, Project: "few", StoryID: id}
		if _, err := s.Costs.RecordOne(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	// Without finished stories to compare with, the dearest is farthest out, and one of a quarter is before it.
	s.Get("/flow?project=few").WantText(t, `<svg x="90.00%"`, `<svg x="74.00%"`, "$1.00 in 1 day.", `class="enough"`,
		"0 stories are finished; with 10 it says what one usually costs.")
}

// TestADotStandsForSeveralCosts where there are many, so that the page stays light; the dearest story has one, with its name.
func TestADotStandsForSeveralCosts(t *testing.T) {
	s := newConsoleSite(t)
	s.add("webshop", board("1_backlog:", "2_current:", "5_done:"))
	s.Answered()
	var records []string
	var calls []domain.Call
	const stories = 500
	for i := range stories {
		id := fmt.Sprintf("%d_story_done", i)
		at := time.Now().Add(-time.Hour - time.Duration(i)*time.Second)
		records = append(records, moved(id, "1_backlog", "2_current", at.Add(-time.Hour)), moved(id, "2_current", "5_done", at))
		usd := domain.Micros(1_000_000)
		if i == 100 { // which is no third one
			usd *= 100
		}
		calls = append(calls, domain.Call{Key: id, At: at, Client: "codex", Model: "m", Project: "webshop", StoryID: id, Stated: &usd})
	}
	s.Record("webshop", records...)
	if err := s.Costs.Record(t.Context(), calls); err != nil {
		t.Fatal(err)
	}
	page := s.Get("/flow").WantText(t, "A dot for each 3.", ">100 story done</text>").Text
	_, costs, _ := strings.Cut(page, `id="cost"`)
	if dots := strings.Count(costs, "<circle"); dots != (stories+2)/3+1 {
		t.Errorf("%d dots for %d stories", dots, stories)
	}
}
