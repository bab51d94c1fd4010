package store_test

import (
	"fmt"
	"testing"

	"switchyard/internal/domain"
)

func TestAProjectThatMakesUpTypesAndStagesCostsOnlyItself(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		const made = 2 * 250
		typeOf := func(n int) string { return fmt.Sprintf("made_up_%04d", n) }
		liar := feedRead("liar")
		for n := range made {
			stamp := 1000 + 2*n
			liar.Records = append(liar.Records,
				eventRecord(t, fmt.Sprintf(`{"type":%q,"said":"hello %04d","timestamp_ms":%d}`, typeOf(n), n, stamp)),
				eventRecord(t, fmt.Sprintf(`{"type":"stage_transition","story_id":"1","story_name":"One","from_stage":"%d_a","to_stage":"%d_b","timestamp_ms":%d}`, n, n, stamp+1)))
		}
		for len(liar.Records) > 0 {
			some := liar
			some.Records, liar.Records = liar.Records[:100], liar.Records[100:]
			appendEvents(t, db, some)
		}
		honest := eventRecord(t, `{"type":"deployed","said":"hello","timestamp_ms":5000}`)
		moved := eventRecord(t, `{"type":"stage_transition","story_id":"2","story_name":"Two","from_stage":"x_here","to_stage":"y_there","timestamp_ms":5001}`)
		none := eventRecord(t, `{"timestamp_ms":5002}`)
		appendEvents(t, db, feedRead("honest", honest, moved, none))

		page := func(q domain.EventQuery) []domain.Event {
			t.Helper()
			q.Limit = 3 * made
			page, err := db.Events(t.Context(), q)
			if err != nil || page.More {
				t.Fatalf("%+v: more %t, %v", q, page.More, err)
			}
			return page.Events
		}
		all := page(domain.EventQuery{})
		if len(all) != 2*made+3 {
			t.Fatalf("%d events are stored", len(all))
		}
		for n := range made {
			if e := all[2*n]; string(e.Type) != typeOf(n) || string(e.JSON) != fmt.Sprintf(`{"said":"hello %04d","timestamp_ms":%d,"type":%q}`, n, 1000+2*n, typeOf(n)) {
				t.Fatalf("event %d is %s %s", n, e.Type, e.JSON)
			}
			if e := all[2*n+1]; e.Type != domain.StageTransition || e.Details().ToStage != fmt.Sprintf("%d_b", n) {
				t.Fatalf("transition %d is %s %s", n, e.Type, e.JSON)
			}
		}
		for n := 0; n < made; n += 10 {
			if found := page(domain.EventQuery{Type: domain.EventType(typeOf(n))}); len(found) != 1 {
				t.Errorf("%d events of the type %s", len(found), typeOf(n))
			}
		}
		for _, q := range []domain.EventQuery{
			{Text: typeOf(made - 1)},
			{Text: "hello 0499", Project: "liar"},
			{Text: "499_b"},
			{Text: "499_b", Type: domain.StageTransition, Project: "liar"},
			{Type: "deployed"},
			{Text: "y_there"},
			{Project: "honest", Type: "deployed", Text: "hello"},
		} {
			if found := page(q); len(found) != 1 {
				t.Errorf("%+v: found %d", q, len(found))
			}
		}
		if found := page(domain.EventQuery{Type: domain.StageTransition}); len(found) != made+1 {
			t.Errorf("%d transitions", len(found))
		}
		if last := all[len(all)-1]; last.Type != "" || string(last.JSON) != `{"timestamp_ms":5002}` {
			t.Errorf("the last one is %q %s", last.Type, last.JSON)
		}
	})
}
