package store_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"switchyard/internal/domain"
)

func TestRegistry(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := t.Context()
		want := func(active string, names ...string) {
			t.Helper()
			now, projects, err := db.Registry(ctx)
			var got []string
			for _, p := range projects {
				got = append(got, p.Name)
			}
			if err != nil || now != active || !slices.Equal(got, names) {
				t.Errorf("active is %q of %q, %v; want %q of %q", now, got, err, active, names)
			}
		}
		code := func(err error, want domain.Code) {
			t.Helper()
			if domain.CodeOf(err) != want {
				t.Errorf("%v, want %q", err, want)
			}
		}
		want("")
		code(db.AddProjects(ctx, nil, "b", domain.Project{Name: "b", URL: "http://b", Token: "t"}, domain.Project{Name: "B", URL: "http://x"}, domain.Project{Name: "ä", URL: "http://x"}), "")
		want("b", "B", "b", "ä") // byte by byte
		code(db.AddProjects(ctx, nil, "", domain.Project{Name: "c", URL: "http://c"}, domain.Project{Name: "b", URL: "http://c"}), domain.Conflict)
		want("b", "B", "b", "ä") // all or none
		was, now := domain.Project{Name: "b", URL: "http://b", Token: "t"}, domain.Project{Name: "b", URL: "http://new", Token: "u"}
		code(db.UpdateProject(ctx, nil, was, now), "")
		code(db.UpdateProject(ctx, nil, was, now), domain.NotFound) // it is another one by now
		code(db.SetActive(ctx, nil, "ä"), "")
		code(db.SetActive(ctx, nil, "none"), domain.NotFound)
		want("ä", "B", "b", "ä")
		if _, projects, _ := db.Registry(ctx); projects[1].URL != "http://new" || projects[1].Token != "u" {
			t.Errorf("the changed project is %+v", projects[1])
		}
		code(db.AddToken(ctx, nil, token("t"), 200), "")
		code(db.Redeem(ctx, nil, "t", record("a")), "")
		code(db.AssignAgent(ctx, nil, "a", "ä"), "")
		code(db.RemoveProject(ctx, nil, "ä"), "")
		code(db.RemoveProject(ctx, nil, "ä"), domain.NotFound)
		want("", "B", "b")
		if agents, err := db.AgentRecords(ctx); err != nil || agents[0].Project != "" {
			t.Errorf("the agent is %+v, %v", agents[0], err)
		}
		code(db.RestoreProject(ctx, nil, "ä", domain.Project{Name: "ä", URL: "http://x"}, []string{"a", "gone"}), "")
		code(db.RestoreProject(ctx, nil, "", domain.Project{Name: "ä", URL: "http://x"}, nil), domain.Conflict)
		want("ä", "B", "b", "ä")
		if agents, err := db.AgentRecords(ctx); err != nil || agents[0].Project != "ä" {
			t.Errorf("the agent is %+v, %v", agents[0], err)
		}
	})
}

func TestSessionsAndNamedTokens(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := t.Context()
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		session := func(id, token string, at time.Time) domain.Session {
			return domain.Session{ID: id, Who: "Zoë", Via: "login", Role: domain.RoleOperator, TokenID: token, CreatedAt: at, LastSeen: at}
		}
		named := func(id, agent string) domain.NamedToken {
			return domain.NamedToken{ID: id, Name: "name", Role: domain.RoleOperator, Hash: "hash of " + id, AgentID: agent, Project: agentProject(agent), CreatedAt: now}
		}
		check(db.AddProjects(ctx, nil, "", domain.Project{Name: "alpha", URL: "http://alpha"}))
		check(db.AddToken(ctx, nil, token("t"), 200))
		check(db.Redeem(ctx, nil, "t", record("a")))
		check(db.AssignAgent(ctx, nil, "a", "alpha"))
		for _, n := range []domain.NamedToken{named("n", ""), named("first", "a"), named("second", "a")} { // an agent has one
			check(db.AddNamedToken(ctx, nil, n))
		}
		for _, s := range []domain.Session{session("old", "", now.Add(-time.Hour)), session("s", "", now), session("of n", "n", now), session("of second", "second", now)} {
			check(db.AddSession(ctx, nil, s, 100))
		}
		check(db.SaveUses(ctx, map[string]time.Time{"s": now.Add(time.Minute), "gone": now}, map[string]time.Time{"n": now.Add(time.Second)}))
		check(db.RemoveSessionsBefore(ctx, now.Add(-time.Minute)))
		want := func(tokens, sessions []string) {
			t.Helper()
			var gotTokens, gotSessions []string
			all, err := db.NamedTokens(ctx)
			for _, n := range all {
				if gotTokens = append(gotTokens, n.ID); n.ID == "n" && !n.LastUsed.Equal(now.Add(time.Second)) {
					t.Errorf("n was used at %v", n.LastUsed)
				}
			}
			check(err)
			open, err := db.Sessions(ctx)
			for _, s := range open {
				if gotSessions = append(gotSessions, s.ID); s.ID == "s" && !s.LastSeen.Equal(now.Add(time.Minute)) {
					t.Errorf("s was seen at %v", s.LastSeen)
				}
			}
			check(err)
			slices.Sort(gotTokens)
			slices.Sort(gotSessions)
			if !slices.Equal(gotTokens, tokens) || !slices.Equal(gotSessions, sessions) {
				t.Errorf("tokens %q, sessions %q; want %q and %q", gotTokens, gotSessions, tokens, sessions)
			}
		}
		want([]string{"n", "second"}, []string{"of n", "of second", "s"})
		check(db.AssignAgent(ctx, nil, "a", "")) // ends the token of its command
		want([]string{"n"}, []string{"of n", "s"})
		check(db.RemoveNamedToken(ctx, nil, "n"))
		want(nil, []string{"s"})
		check(db.AddSession(ctx, nil, session("another", "", now), 100))
		check(db.RemoveOtherSessions(ctx, nil, "s"))
		want(nil, []string{"s"})
		check(db.RemoveSession(ctx, nil, "s"))
		want(nil, nil)
		for _, err := range []error{db.RemoveNamedToken(ctx, nil, "n"), db.RemoveSession(ctx, nil, "s"), db.RemoveOtherSessions(ctx, nil, "s")} {
			if domain.CodeOf(err) != domain.NotFound {
				t.Errorf("a second time: %v", err)
			}
		}
	})
}

// agentProject returns the project of an agent's command.
func agentProject(agent string) string {
	if agent == "" {
		return ""
	}
	return "alpha"
}

func TestAudit(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := t.Context()
		entry := func(n int, who, action string) domain.AuditEntry {
			return domain.AuditEntry{
				At: time.UnixMilli(int64(n)), Who: who, Via: "login", Role: domain.RoleAdmin, Action: domain.Action(action), Subject: "100%_x", Detail: "Detail", RequestID: "r",
			}
		}
		// Refused changes, and those without an effect, leave no entry.
		first := entry(1, "a", "added")
		if err := db.AddProjects(ctx, &first, "", domain.Project{Name: "p", URL: "http://p"}); err != nil {
			t.Fatal(err)
		}
		if err := db.AddProjects(ctx, &first, "", domain.Project{Name: "p", URL: "http://p"}); domain.CodeOf(err) != domain.Conflict {
			t.Error(err)
		}
		if err := db.RemoveSession(ctx, &first, "none"); domain.CodeOf(err) != domain.NotFound {
			t.Error(err)
		}
		for n, who := range []string{"b", "a", "b"} {
			if err := db.AddAudit(ctx, entry(n+2, who, "other")); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			q    domain.AuditQuery
			want []int64
			more bool
		}{
			{domain.AuditQuery{Limit: 10}, []int64{4, 3, 2, 1}, false},
			{domain.AuditQuery{Limit: 4}, []int64{4, 3, 2, 1}, false},
			{domain.AuditQuery{Limit: 3}, []int64{4, 3, 2}, true},
			{domain.AuditQuery{Limit: 2, Who: "a"}, []int64{3, 1}, false},
			{domain.AuditQuery{Limit: 10, Action: "other", Before: 4}, []int64{3, 2}, false},
			{domain.AuditQuery{Limit: 10, Text: "0%_X"}, []int64{4, 3, 2, 1}, false},
			{domain.AuditQuery{Limit: 10, Text: "0%%X"}, nil, false},
		} {
			page, err := db.AuditPage(ctx, c.q)
			var got []int64
			for _, e := range page.Entries {
				got = append(got, e.At.UnixMilli())
			}
			if err != nil || !slices.Equal(got, c.want) || page.More != c.more {
				t.Errorf("%+v: %v, more %t, %v, want %v, %t", c.q, got, page.More, err, c.want, c.more)
			}
		}
		// Texts are found as in events, ignoring case and accents, among any number of entries.
		for n := range 520 {
			e := entry(100+n, "c", "other")
			if n == 10 {
				e.Subject, e.Detail = "Überblick", "after the ÉTÉ"
			}
			if err := db.AddAudit(ctx, e); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range []string{"uberBLICK", "the été", "überblick AFTER the ete"} {
			page, err := db.AuditPage(ctx, domain.AuditQuery{Limit: 10, Text: text})
			if err != nil || len(page.Entries) != 1 || page.More || page.Entries[0].Subject != "Überblick" {
				t.Errorf("%q: %+v, %v", text, page, err)
			}
		}
		if removed, err := db.RemoveAuditBefore(ctx, time.UnixMilli(4), time.Time{}, 2); removed != 2 || err != nil {
			t.Errorf("removed %d, %v", removed, err)
		}
	})
}

func TestAcknowledgements(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := t.Context()
		first := domain.Acknowledgement{Key: "k", Project: "p", Text: "t", By: "a", At: now, Until: now.Add(time.Hour), Since: now.Add(-time.Hour)}
		again := first
		again.At, again.By, again.Until = now.Add(time.Second), "b", time.Time{}
		for _, a := range []domain.Acknowledgement{first, again} {
			if err := db.Acknowledge(ctx, nil, a); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			end  domain.Acknowledgement
			left int
		}{{first, 1}, {again, 0}, {again, 0}} { // one that was made again stays
			if err := db.EndAcknowledgements(ctx, nil, c.end); err != nil {
				t.Error(err)
			}
			all, err := db.Acknowledgements(ctx)
			if err != nil || len(all) != c.left || c.left == 1 && all[0] != again {
				t.Errorf("left are %+v, %v", all, err)
			}
		}
	})
}

func TestWhatThereIsToSayOfADatabase(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := t.Context()
		if err := db.Ping(ctx); err != nil {
			t.Error(err)
		}
		if size, _, err := db.Size(ctx); size <= 0 || err != nil {
			t.Errorf("size %d, %v", size, err)
		}
		if oldest, err := db.OldestEvent(ctx); !oldest.IsZero() || err != nil {
			t.Errorf("the oldest of no events: %v, %v", oldest, err)
		}
		if since, err := db.WriteFailure(); !since.IsZero() || err != nil {
			t.Errorf("failing since %v: %v", since, err)
		}
	})
}

func TestARemovalIsTakenAsItWasKeptOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		kept := domain.Removal{
			Project: domain.Project{Name: "alpha", URL: "http://alpha", Token: "secret"}, Active: true, Agents: []string{"a", "b"},
		}
		if err := db.KeepRemoval(t.Context(), "id", kept, time.UnixMilli(1000), 10); err != nil {
			t.Fatal(err)
		}
		if got, err := db.TakeRemoval(t.Context(), "id", time.UnixMilli(0)); err != nil || !reflect.DeepEqual(got, kept) {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := db.TakeRemoval(t.Context(), "id", time.UnixMilli(0)); domain.CodeOf(err) != domain.NotFound {
			t.Errorf("the second time: %v", err)
		}
	})
}
