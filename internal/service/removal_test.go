package service_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/store/storetest"
)

// TestRestoringAProject checks what undoing a removal restores, at once and after a restart.
func TestRestoringAProject(t *testing.T) {
	ctx := context.Background()
	g := openGateway(t, storetest.Dir(t))
	defer g.store.Close()
	token := domain.Secret("secret-1")
	if _, err := g.Projects.Add(ctx, "alpha", "http://alpha", &token); err != nil {
		t.Fatal(err)
	}
	g.project("beta", "http://beta")
	if err := g.Projects.Switch(ctx, "alpha"); err != nil {
		t.Fatal(err)
	}
	free, taken, ended := g.join("free"), g.join("taken"), g.join("ended")
	g.join("other") // was never assigned
	for _, a := range []domain.Agent{free, taken, ended} {
		g.assign(a.ID, "alpha")
	}

	removed, err := g.Projects.Remove(ctx, "alpha")
	if err != nil {
		t.Fatal(err)
	}
	g.assign(taken.ID, "beta")
	if err := g.Agents.Remove(ctx, ended.ID); err != nil {
		t.Fatal(err)
	}
	if agents, err := g.Projects.Restore(ctx, removed); err != nil || agents != 1 {
		t.Fatalf("%d agents came back, %v", agents, err)
	}
	check := func() {
		t.Helper()
		if p, _ := g.Projects.Registry().Find("alpha"); p.Token != token || g.Projects.Registry().Active != "alpha" {
			t.Errorf("project %v, active %q", p, g.Projects.Registry().Active)
		}
		var got []string
		for _, a := range g.Agents.All() {
			project := "-"
			if a.Project != "" {
				project = a.Project
			}
			got = append(got, a.Label+" "+project)
		}
		if want := []string{"free alpha", "other -", "taken beta"}; !slices.Equal(got, want) {
			t.Errorf("agents %q, want %q", got, want)
		}
	}
	check()
	g.restart()
	check()

	// A second time is a conflict, and changes no assignment.
	g.assign(free.ID, "")
	if _, err := g.Projects.Restore(ctx, removed); domain.CodeOf(err) != domain.Conflict {
		t.Errorf("again: %v", err)
	}
	if a, _ := g.Agents.Find(free.ID); a.Project != "" {
		t.Errorf("free is assigned to %s", a.Project)
	}
	// Another project that has been made active in the meantime stays active.
	if removed, err = g.Projects.Remove(ctx, "alpha"); err != nil {
		t.Fatal(err)
	}
	if err := g.Projects.Switch(ctx, "beta"); err != nil {
		t.Fatal(err)
	}
	if agents, err := g.Projects.Restore(ctx, removed); err != nil || agents != 0 || g.Projects.Registry().Active != "beta" {
		t.Errorf("%d agents, active %q, %v", agents, g.Projects.Registry().Active, err)
	}
	if names := fmt.Sprint(g.Projects.Registry().Projects[0].Name, g.Projects.Registry().Projects[1].Name); names != "alphabeta" {
		t.Errorf("the order is %s", names)
	}
}
