package service_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// TestTheAuditIsKeptFor400Days: older entries are removed in small steps.
func TestTheAuditIsKeptFor400Days(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := storetest.Dir(t)
		db, err := sqlite.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		old := domain.NewAuditEntry(time.Now(), domain.Actor{Who: "zoe"}, domain.Change{Action: domain.ProjectAdded})
		for range 600 {
			if err := db.AddAudit(t.Context(), old); err != nil {
				t.Fatal(err)
			}
		}
		db.Close()
		s, shut := reopen(t, dir)
		defer shut()
		time.Sleep(399 * 24 * time.Hour)
		if err := s.Projects.Seed(t.Context(), []domain.Project{{Name: "alpha", URL: "http://127.0.0.1:1"}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Audit.Run(ctx) }()
		kept := func() string {
			page, err := s.Audit.Page(t.Context(), domain.AuditQuery{Limit: 10_000})
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(len(page.Entries), " ", page.Entries[0].Who, " ", page.Entries[0].Subject)
		}
		time.Sleep(time.Minute)
		if got := kept(); got != "601 switchyard alpha" {
			t.Errorf("after 399 days: %s", got)
		}
		time.Sleep(25 * time.Hour)
		if got := kept(); got != "1 switchyard alpha" {
			t.Errorf("after 400 days: %s", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestLoginsAreInTheAuditFor30Days, other changes for longer.
func TestLoginsAreInTheAuditFor30Days(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, shut := reopen(t, storetest.Dir(t))
		defer shut()
		if err := s.Projects.Seed(t.Context(), []domain.Project{{Name: "alpha", URL: "http://127.0.0.1:1"}}); err != nil {
			t.Fatal(err)
		}
		zoe := domain.Administrator(domain.ViaAdminToken)
		ctx, cancel := context.WithCancel(domain.WithActor(t.Context(), &zoe))
		ended := make(chan error)
		go func() { ended <- s.Audit.Run(ctx) }()
		want := func(entries int) {
			t.Helper()
			page, err := s.Audit.Page(t.Context(), domain.AuditQuery{Limit: 100})
			if err != nil || len(page.Entries) != entries {
				t.Errorf("%d entries, %v, want %d", len(page.Entries), err, entries)
			}
		}
		for range 3 { // the first two are one entry
			if _, err := s.Access.BeginSession(ctx, zoe, "", ""); err != nil {
				t.Fatal(err)
			}
			time.Sleep(31 * time.Second)
		}
		want(3)
		time.Sleep(29 * 24 * time.Hour)
		want(3)
		time.Sleep(25 * time.Hour)
		want(1)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestATokenForOneProjectChangesThatOnly: any other change is Forbidden and has no effect.
func TestATokenForOneProjectChangesThatOnly(t *testing.T) {
	s, shut := reopen(t, storetest.Dir(t))
	defer shut()
	for _, name := range []string{"alpha", "beta"} {
		if _, err := s.Projects.Add(t.Context(), name, "http://127.0.0.1:1", nil); err != nil {
			t.Fatal(err)
		}
	}
	ctx := domain.WithActor(t.Context(), &domain.Actor{Who: "builder", Via: domain.ViaToken, Role: domain.RoleOperator, Project: "alpha"})
	_, _, create := s.Stories.Create(ctx, "beta", []byte("{}"))
	_, _, patch := s.Stories.Patch(ctx, "beta", "1", []byte("{}"))
	_, tool := s.Tools.Call(ctx, "beta", "x", nil, nil)
	_, _, token := s.Agents.CreateJoinToken(ctx, "")
	for what, err := range map[string]error{
		"a story of another project": create, "a change of one": patch, "a tool of it": tool,
		"switching": s.Projects.Switch(ctx, "alpha"), "a join token": token, "a test message": s.Bot.Test(ctx),
	} {
		if domain.CodeOf(err) != domain.Forbidden {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s.Projects.Registry().Active != "" {
		t.Error("it has switched")
	}
}
