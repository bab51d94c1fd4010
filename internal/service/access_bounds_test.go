package service_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store/storetest"
)

func TestAnAccountHasFiftySessionsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := storetest.Dir(t)
		s, shut := reopen(t, dir)
		begin := func(account string) domain.Session {
			t.Helper()
			session, err := s.Access.BeginSession(t.Context(), domain.Actor{Who: "Zoë", Via: domain.ViaLogin, Role: domain.RoleViewer, Account: account}, "", "")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			return session
		}
		others := begin("zoe")
		oldest := begin("script")
		held := s.Access.Session(t.Context(), oldest.ID)
		if held == nil {
			t.Fatal("the session did not begin")
		}
		var last domain.Session
		for range 50 {
			last = begin("script")
		}
		if held.Ended.Err() == nil {
			t.Error("what is held for the oldest goes on")
		}
		for _, when := range []string{"before", "after"} {
			is := s.Access.Session(t.Context(), last.ID) != nil
			was := s.Access.Session(t.Context(), oldest.ID) != nil
			other := s.Access.Session(t.Context(), others.ID) != nil
			if n := len(s.Access.Sessions()); n != 51 || !is || was || !other {
				t.Errorf("%s a restart there are %d sessions, the last %t, the oldest %t, another account's %t", when, n, is, was, other)
			}
			shut()
			s, shut = reopen(t, dir)
		}
		shut()
	})
}

func TestAnExpiredTokenIsListedForThirtyDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := storetest.Dir(t)
		s, shut := reopen(t, dir)
		hour := time.Hour
		for name, life := range map[string]*time.Duration{"for an hour": &hour, "for ever": nil} {
			if _, _, err := s.Access.CreateToken(t.Context(), domain.NamedToken{Name: name, Role: domain.RoleViewer}, life); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Access.Run(ctx) }()
		listed := func(days int, want string) {
			t.Helper()
			time.Sleep(time.Duration(days) * 24 * time.Hour)
			var names []string
			for _, token := range s.Access.Tokens() {
				names = append(names, token.Name)
			}
			if fmt.Sprint(names) != want {
				t.Errorf("listed are %v, want %s", names, want)
			}
		}
		listed(29, "[for an hour for ever]")
		listed(2, "[for ever]")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		shut()
		s, shut = reopen(t, dir)
		defer shut()
		listed(0, "[for ever]")
	})
}
