package service_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"switchyard/internal/domain"
)

// TestRestoringAProject: what comes back with a project whose removal is taken back, now and after a restart.
func TestRestoringAProject(t *testing.T) {
	ctx := context.Background()
	y := openYard(t, t.TempDir())
	defer y.store.Close()
	token := domain.Secret("secret-1")
	if _, err := y.Projects.Add(ctx, "alpha", "http://alpha", &token); err != nil {
		t.Fatal(err)
	}
	y.project("beta", "http://beta")
	if err := y.Projects.Switch(ctx, "alpha"); err != nil {
		t.Fatal(err)
	}
	free, taken, ended := y.join("free"), y.join("taken"), y.join("ended")
	y.join("other") // was never assigned
	for _, a := range []domain.Agent{free, taken, ended} {
		y.assign(a.ID, "alpha")
	}

	removed, err := y.Projects.Remove(ctx, "alpha")
	if err != nil {
		t.Fatal(err)
	}
	y.assign(taken.ID, "beta")
	if err := y.Agents.Remove(ctx, ended.ID); err != nil {
		t.Fatal(err)
	}
	if agents, err := y.Projects.Restore(ctx, removed); err != nil || agents != 1 {
		t.Fatalf("%d agents came back, %v", agents, err)
	}
	check := func() {
		t.Helper()
		if p, _ := y.Projects.Registry().Find("alpha"); p.Token != token || y.Projects.Registry().Active != "alpha" {
			t.Errorf("project %v, active %q", p, y.Projects.Registry().Active)
		}
		var got []string
		for _, a := range y.Agents.All() {
			project := "-"
			if a.AssignedProject != nil {
				project = *a.AssignedProject
			}
			got = append(got, a.Label+" "+project)
		}
		if want := []string{"free alpha", "other -", "taken beta"}; !slices.Equal(got, want) {
			t.Errorf("agents %q, want %q", got, want)
		}
	}
	check()
	y.restart()
	check()

	// Twice is a conflict, and takes nobody away.
	y.assign(free.ID, "")
	if _, err := y.Projects.Restore(ctx, removed); domain.CodeOf(err) != domain.Conflict {
		t.Errorf("again: %v", err)
	}
	if a, _ := y.Agents.Find(free.ID); a.AssignedProject != nil {
		t.Errorf("free is assigned to %s", *a.AssignedProject)
	}
	// Another project that was made the active one meanwhile stays so.
	if removed, err = y.Projects.Remove(ctx, "alpha"); err != nil {
		t.Fatal(err)
	}
	if err := y.Projects.Switch(ctx, "beta"); err != nil {
		t.Fatal(err)
	}
	if agents, err := y.Projects.Restore(ctx, removed); err != nil || agents != 0 || y.Projects.Registry().Active != "beta" {
		t.Errorf("%d agents, active %q, %v", agents, y.Projects.Registry().Active, err)
	}
	if names := fmt.Sprint(y.Projects.Registry().Projects[0].Name, y.Projects.Registry().Projects[1].Name); names != "alphabeta" {
		t.Errorf("the order is %s", names)
	}
}
