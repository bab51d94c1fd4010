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
	if _, err := y.AddProject(ctx, "alpha", "http://alpha", &token); err != nil {
		t.Fatal(err)
	}
	y.project("beta", "http://beta")
	if err := y.Switch(ctx, "alpha"); err != nil {
		t.Fatal(err)
	}
	free, taken, ended := y.join("free"), y.join("taken"), y.join("ended")
	y.join("other") // was never assigned
	for _, a := range []domain.Agent{free, taken, ended} {
		y.assign(a.ID, "alpha")
	}

	removed, err := y.RemoveProject(ctx, "alpha")
	if err != nil {
		t.Fatal(err)
	}
	y.assign(taken.ID, "beta")
	if err := y.RemoveAgent(ctx, ended.ID); err != nil {
		t.Fatal(err)
	}
	if agents, err := y.RestoreProject(ctx, removed); err != nil || agents != 1 {
		t.Fatalf("%d agents came back, %v", agents, err)
	}
	check := func() {
		t.Helper()
		if p, _ := y.Registry().Find("alpha"); p.Token != token || y.Registry().Active != "alpha" {
			t.Errorf("project %v, active %q", p, y.Registry().Active)
		}
		var got []string
		for _, a := range y.AllAgents() {
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
	if _, err := y.RestoreProject(ctx, removed); domain.CodeOf(err) != domain.Conflict {
		t.Errorf("again: %v", err)
	}
	if a, _ := y.Agent(free.ID); a.AssignedProject != nil {
		t.Errorf("free is assigned to %s", *a.AssignedProject)
	}
	// Another project that was made the active one meanwhile stays so.
	if removed, err = y.RemoveProject(ctx, "alpha"); err != nil {
		t.Fatal(err)
	}
	if err := y.Switch(ctx, "beta"); err != nil {
		t.Fatal(err)
	}
	if agents, err := y.RestoreProject(ctx, removed); err != nil || agents != 0 || y.Registry().Active != "beta" {
		t.Errorf("%d agents, active %q, %v", agents, y.Registry().Active, err)
	}
	if names := fmt.Sprint(y.Registry().Projects[0].Name, y.Registry().Projects[1].Name); names != "alphabeta" {
		t.Errorf("the order is %s", names)
	}
}
