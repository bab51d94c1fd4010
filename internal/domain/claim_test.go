package domain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
)

func TestStoriesAreBegunInOrder(t *testing.T) {
	var items []domain.Item
	for id := range strings.FieldsSeq("beta task-010 10_a alpha 2_c story99999999999999999999999 2_b US-1-a") {
		items = append(items, domain.Item{StoryID: id})
	}
	free := func(i *domain.Item) bool { return i.StoryID != "2_c" }
	for most, want := range map[int]string{9: "US-1-a 2_b 10_a task-010 story99999999999999999999999 alpha beta", 3: "US-1-a 2_b 10_a", 1: "US-1-a"} {
		if got := strings.Join(domain.NextStories(items, most, free), " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestAnAgentMentionsWholeWords(t *testing.T) {
	for text, want := range map[string]bool{
		"1_pay": true, "on 1_pay.": true, "\n1_pay\n": true, "feature/1_pay:": true, "21_pay": false, "1_pay-2": false, "1_pays": false,
		"é1_pay": false, "1_pay_x 1_pay": true, "": false,
	} {
		if domain.Mentions(text, "1_pay") != want {
			t.Errorf("%q: not %v", text, want)
		}
	}
	agents := []domain.Agent{{ID: "a", Label: "first", Project: "p", Detail: "on task.1 and 1_pay"}, {ID: "b", Label: "second", Project: "p", Detail: "1_pay 2_x"}}
	owners := domain.NewOwners(map[domain.StoryKey]domain.Claim{{Project: "p", ID: "2_x"}: {By: "zoe", Holder: "token z"}}, agents)
	for id, want := range map[string]string{"1_pay": "first", "2_x": "zoe", "task.1": "first", "3_y": ""} {
		if got := owners.Of("p", id).Name; got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	if got := owners.Of("q", "1_pay"); got != (domain.Owner{}) {
		t.Errorf("another project: %+v", got)
	}
}

// TestAHistorySaysWhoHasDoneWhat: each change has one event, the first that fits.
func TestAHistorySaysWhoHasDoneWhat(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	event := func(seconds int, record string) domain.Event {
		r, err := domain.ParseRecord(json.RawMessage(record))
		if err != nil {
			t.Fatal(err)
		}
		return domain.Event{ReceivedAt: at.Add(time.Duration(seconds) * time.Second), Record: r}
	}
	moved := func(seconds int, to string) domain.Event {
		return event(seconds, `{"type":"stage_transition","story_id":"1","to_stage":"`+to+`","by":"an impostor","via":"mcp","timestamp_ms":1}`)
	}
	change := func(seconds int, kind domain.EventType, value, by string) domain.StoryChange {
		return domain.StoryChange{StoryID: "1", Type: kind, Value: value, At: at.Add(time.Duration(seconds) * time.Second), By: by, Via: domain.ChannelAPI}
	}
	events := []domain.Event{
		moved(0, "2_current"), moved(10, "3_qa"), moved(20, "2_current"), moved(30, "3_qa"),
		event(40, `{"type":"story_blocked","story_id":"1","reason":"a key","timestamp_ms":1}`), moved(5000, "4_merge"),
	}
	past := domain.History(events, []domain.StoryChange{
		change(10, domain.StageTransition, "3_qa", "zoe"), change(19, domain.StageTransition, "2_current", "ann"),
		change(39, domain.StoryBlocked, "a key", "bob"), change(50, domain.StageTransition, "4_merge", "eve"),
	})
	var by []string
	for _, e := range past {
		by = append(by, e.By)
	}
	if got := strings.Join(by, ","); got != ",zoe,ann,,bob," {
		t.Errorf("by %s", got)
	}
	var first, second struct{ By, Via *string }
	for i, into := range []any{&first, &second} {
		text, err := json.Marshal(past[i])
		if err != nil || json.Unmarshal(text, into) != nil {
			t.Fatalf("%s, %v", text, err)
		}
	}
	if first.By != nil || first.Via != nil || *second.By != "zoe" || *second.Via != "api" {
		t.Errorf("%+v %+v", first, second)
	}
}

// TestALaterChangeHasTheEventOfALaterPage: the events before those that are listed are not known.
func TestALaterChangeHasTheEventOfALaterPage(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	moved := func(seconds int, to string) domain.Event {
		r, err := domain.ParseRecord(json.RawMessage(`{"type":"stage_transition","story_id":"1","to_stage":"` + to + `","timestamp_ms":1}`))
		if err != nil {
			t.Fatal(err)
		}
		return domain.Event{ReceivedAt: at.Add(time.Duration(seconds) * time.Second), Record: r}
	}
	change := func(seconds int, to, by string) domain.StoryChange {
		return domain.StoryChange{StoryID: "1", Type: domain.StageTransition, Value: to, At: at.Add(time.Duration(seconds) * time.Second), By: by, Via: domain.ChannelAPI}
	}
	changes := []domain.StoryChange{change(0, "3_qa", "ann"), change(60, "2_current", "bob"), change(120, "3_qa", "zoe")}
	all := []domain.Event{moved(1, "3_qa"), moved(61, "2_current"), moved(121, "3_qa")}
	for first, want := range []string{"ann bob zoe", "bob zoe", "zoe"} {
		var by []string
		for _, e := range domain.History(all[first:], changes) {
			by = append(by, e.By)
		}
		if got := strings.Join(by, " "); got != want {
			t.Errorf("from %d: %s, want %s", first, got, want)
		}
	}
}

// TestMovesIntoOneStageInQuickSuccessionKeepTheirAuthors, however late their events come, and if the clock of who stores them is behind.
func TestMovesIntoOneStageInQuickSuccessionKeepTheirAuthors(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	for _, test := range []struct {
		changed, told []int // milliseconds
		want          string
	}{
		{[]int{0, 200}, []int{10, 210}, "ann bob"},
		{[]int{0, 200}, []int{2000, 2000}, "ann bob"},
		{[]int{0, 200}, []int{-90, 110}, "ann bob"},
		{[]int{0, 200}, []int{-300, 10, 210}, " ann bob"}, // the first is by hand
		{[]int{0, 200}, []int{10, 210, 400}, "ann bob "},
		{[]int{0, 20, 40}, []int{900, 910, 920}, "ann bob zoe"},
		{[]int{0, 200}, []int{230}, "bob"},
	} {
		var events []domain.Event
		for _, ms := range test.told {
			r, err := domain.ParseRecord(json.RawMessage(`{"type":"stage_transition","story_id":"1","to_stage":"3_qa","timestamp_ms":1}`))
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, domain.Event{ReceivedAt: at.Add(time.Duration(ms) * time.Millisecond), Record: r})
		}
		var changes []domain.StoryChange
		for i, ms := range test.changed {
			changes = append(changes, domain.StoryChange{
				StoryID: "1", Type: domain.StageTransition, Value: "3_qa", At: at.Add(time.Duration(ms) * time.Millisecond),
				By: []string{"ann", "bob", "zoe"}[i], Via: domain.ChannelAPI,
			})
		}
		var by []string
		for _, e := range domain.History(events, changes) {
			by = append(by, e.By)
		}
		if got := strings.Join(by, " "); got != test.want {
			t.Errorf("changed at %v, told at %v: %q, want %q", test.changed, test.told, got, test.want)
		}
	}
}

// TestAClaimEndsInAStageThatHasEnded, but not in another one that the board does not have itself.
func TestAClaimEndsInAStageThatHasEnded(t *testing.T) {
	other := func(name string) domain.Stage { return domain.Stage{Name: name, Other: true} }
	stages := domain.InOrder([]domain.Stage{{Name: "1_to_do"}, {Name: "2_doing"}, {Name: "3_done"}, {Name: "4_archived"}, other("5_won_t_do"), other("6_on_hold")})
	for stage, ends := range map[string]bool{"2_doing": false, "6_on_hold": false, "3_done": true, "5_won_t_do": true} {
		if domain.EndsClaim(stages, stage) != ends {
			t.Errorf("in %s it ends: %v", stage, !ends)
		}
	}
	from, to := domain.WorkStages(stages)
	if to-from != 2 || stages[from+1].Name != "6_on_hold" || stages[len(stages)-1].Name != "5_won_t_do" || domain.OpenStages(stages) != 3 {
		t.Errorf("stages %v, work from %d to %d", stages, from, to)
	}
	if unnamed := domain.InOrder([]domain.Stage{{Name: "1_a"}, {Name: "2_b"}, other("3_closed"), other("4_held")}); domain.DoneStage(unnamed) != 2 || domain.OpenStages(unnamed) != 3 {
		t.Errorf("the last stage of its own is %d in %v", domain.DoneStage(unnamed), unnamed)
	}
}
