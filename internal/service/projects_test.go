package service_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// reopen returns a service over the database in dir, as after a restart.
func reopen(t *testing.T, dir string) (*service.Service, func()) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := service.New(t.Context(), service.Options{Store: db, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() { db.Close() }
}

func names(r *domain.Registry) string {
	var all []string
	for _, p := range r.Projects {
		all = append(all, p.Name+"="+p.URL+"="+p.Token.Reveal())
	}
	return strings.Join(all, " ") + " active " + r.Active
}

func TestRegistryOutlivesRestart(t *testing.T) {
	dir := storetest.Dir(t)
	s, shut := reopen(t, dir)
	ctx := t.Context()
	token, none := domain.Secret("s3cret"), domain.Secret("")
	steps := []func() error{
		func() error { _, err := s.Projects.Add(ctx, " beta\u2003", " http://b \n", &token); return err },
		func() error { _, err := s.Projects.Add(ctx, "alpha", "http://a/x/", nil); return err },
		func() error { _, err := s.Projects.Add(ctx, "Zulu", "http://z", &token); return err },
		func() error { _, err := s.Projects.Add(ctx, "Ähre/50%", "https://ä.example", nil); return err },
		func() error { return s.Projects.Switch(ctx, "beta") },
		func() error { _, err := s.Projects.Update(ctx, "beta", "http://b/2", nil); return err },
		func() error { _, err := s.Projects.Update(ctx, "Zulu", "http://z", &none); return err },
		func() error { _, err := s.Projects.Ensure(ctx, " alpha ", "http://a2", nil); return err },
		func() error { _, err := s.Projects.Ensure(ctx, "new", "http://n", nil); return err },
		func() error { _, err := s.Projects.Remove(ctx, "Ähre/50%"); return err },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	want := "Zulu=http://z= alpha=http://a2= beta=http://b/2=s3cret new=http://n= active beta"
	if got := names(s.Projects.Registry()); got != want {
		t.Errorf("registry:\n got %s\nwant %s", got, want)
	}
	shut()
	s, shut = reopen(t, dir)
	defer shut()
	if got := names(s.Projects.Registry()); got != want {
		t.Errorf("registry after a restart:\n got %s\nwant %s", got, want)
	}
	if _, err := s.Projects.Remove(ctx, "beta"); err != nil {
		t.Fatal(err)
	}
	if got := s.Projects.Registry().Active; got != "" {
		t.Errorf("active after its removal: %q", got)
	}
}

func TestRefusedChangesChangeNothing(t *testing.T) {
	s, shut := reopen(t, storetest.Dir(t))
	defer shut()
	ctx := t.Context()
	if _, err := s.Projects.Add(ctx, "alpha", "http://a", nil); err != nil {
		t.Fatal(err)
	}
	before, changed := s.Projects.Registry(), s.Projects.Changed()
	control := domain.Secret("a\nb")
	for name, test := range map[string]struct {
		change func() error
		code   domain.Code
		text   string
	}{
		"duplicate":            {func() error { _, err := s.Projects.Add(ctx, " alpha ", "http://b", nil); return err }, domain.Conflict, "project 'alpha' already exists"},
		"duplicate, bad url":   {func() error { _, err := s.Projects.Add(ctx, " alpha ", "nonsense", &control); return err }, domain.Conflict, "project 'alpha' already exists"},
		"bad url":              {func() error { _, err := s.Projects.Add(ctx, "b", "ftp://b", nil); return err }, domain.Invalid, "url: "},
		"bad token":            {func() error { _, err := s.Projects.Add(ctx, "b", "http://b", &control); return err }, domain.Invalid, "token: "},
		"update of unknown":    {func() error { _, err := s.Projects.Update(ctx, "b", "http://b", nil); return err }, domain.NotFound, "project 'b' does not exist"},
		"update to bad url":    {func() error { _, err := s.Projects.Update(ctx, "alpha", "", nil); return err }, domain.Invalid, "url: "},
		"switch to unknown":    {func() error { return s.Projects.Switch(ctx, "b") }, domain.NotFound, "project 'b' does not exist"},
		"removal of unknown":   {func() error { _, err := s.Projects.Remove(ctx, ""); return err }, domain.NotFound, "project '' does not exist"},
		"ensure with bad name": {func() error { _, err := s.Projects.Ensure(ctx, "..", "http://b", nil); return err }, domain.Invalid, "name: "},
	} {
		err := test.change()
		if domain.CodeOf(err) != test.code || !strings.HasPrefix(domain.MessageOf(err), test.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	select {
	case <-changed:
		t.Error("a change was announced")
	default:
	}
	if s.Projects.Registry() != before {
		t.Error("the registry changed")
	}
}

func TestOneOfManyAddsOfANameSucceeds(t *testing.T) {
	s, shut := reopen(t, storetest.Dir(t))
	defer shut()
	var group sync.WaitGroup
	results := make(chan error, 100)
	for i := range 100 {
		group.Go(func() {
			_, err := s.Projects.Add(t.Context(), "alpha", fmt.Sprintf("http://%d", i), nil)
			results <- err
		})
	}
	group.Wait()
	close(results)
	codes := map[domain.Code]int{}
	for err := range results {
		codes[domain.CodeOf(err)]++
	}
	if codes[""] != 1 || codes[domain.Conflict] != 99 {
		t.Errorf("results: %v", codes)
	}
}

func TestChangesAreAnnounced(t *testing.T) {
	s, shut := reopen(t, storetest.Dir(t))
	defer shut()
	for i, change := range []func() error{
		func() error { _, err := s.Projects.Add(t.Context(), "a", "http://a", nil); return err },
		func() error { return s.Projects.Switch(t.Context(), "a") },
		func() error { _, err := s.Projects.Update(t.Context(), "a", "http://b", nil); return err },
		func() error { _, err := s.Projects.Remove(t.Context(), "a"); return err },
	} {
		changed, version := s.Projects.Changed(), s.Projects.Registry().Version
		if err := change(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		default:
			t.Errorf("change %d was not announced", i)
		}
		if s.Projects.Registry().Version <= version {
			t.Errorf("change %d did not raise the version", i)
		}
	}
}

func TestSeedsEnterAnEmptyRegistryOnly(t *testing.T) {
	s, shut := reopen(t, storetest.Dir(t))
	defer shut()
	twice := []domain.Project{{Name: "b", URL: "http://b"}, {Name: " b", URL: "http://c"}}
	if err := s.Projects.Seed(t.Context(), twice); domain.CodeOf(err) != domain.Conflict {
		t.Errorf("a name twice: %v", err)
	}
	for _, seeds := range [][]domain.Project{
		{},
		{{Name: "b", URL: "http://b"}, {Name: "a", URL: "http://a"}},
		{{Name: "late", URL: "http://late"}},
	} {
		if err := s.Projects.Seed(t.Context(), seeds); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := names(s.Projects.Registry()), "a=http://a= b=http://b= active b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNothingIsShownThatWasNotStored(t *testing.T) {
	s, shut := reopen(t, storetest.Dir(t))
	if _, err := s.Projects.Add(t.Context(), "a", "http://a", nil); err != nil {
		t.Fatal(err)
	}
	shut() // from here on the store fails
	before := s.Projects.Registry()
	if _, err := s.Projects.Add(t.Context(), "b", "http://b", nil); domain.CodeOf(err) != domain.Internal {
		t.Errorf("add: %v", err)
	}
	if _, err := s.Projects.Remove(t.Context(), "a"); domain.CodeOf(err) != domain.Internal {
		t.Errorf("remove: %v", err)
	}
	if err := s.Projects.Switch(t.Context(), "a"); domain.CodeOf(err) != domain.Internal {
		t.Errorf("switch: %v", err)
	}
	if s.Projects.Registry() != before {
		t.Error("the registry changed")
	}
}

func TestTokenStaysWithItsOrigin(t *testing.T) {
	token := domain.Secret("s3cret")
	for _, test := range []struct {
		url  string
		kept bool
	}{
		{"http://one.example/other/path/", true},
		{"http://ONE.example:80", true},
		{"https://one.example", false},
		{"http://one.example:8080", false},
		{"http://two.example", false},
	} {
		s, shut := reopen(t, storetest.Dir(t))
		if _, err := s.Projects.Add(t.Context(), "alpha", "http://one.example/path", &token); err != nil {
			t.Fatal(err)
		}
		if p, err := s.Projects.Update(t.Context(), "alpha", test.url, nil); err != nil || (p.Token == token) != test.kept {
			t.Errorf("%s: token %q, %v", test.url, p.Token.Reveal(), err)
		}
		if p, err := s.Projects.Update(t.Context(), "alpha", "http://three.example", &token); err != nil || p.Token != token {
			t.Errorf("a token that comes along: %q, %v", p.Token.Reveal(), err)
		}
		shut()
	}
}
