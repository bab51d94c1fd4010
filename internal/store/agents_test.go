package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
)

var now = time.UnixMilli(1_000_000)

func record(id string) domain.AgentRecord {
	return domain.AgentRecord{Agent: domain.Agent{
		ID: id, Label: "label " + id, Version: "1.0", State: domain.AgentIdle, JoinedAt: now, StateSince: now, LastSeen: now,
	}, SecretHash: "secret " + id}
}

func token(hash string) domain.JoinToken {
	return domain.JoinToken{Hash: hash, CreatedAt: now.Add(-time.Hour), ExpiresAt: now.Add(time.Hour)}
}

func TestRedeem(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := t.Context()
		expired := token("expired")
		expired.ExpiresAt = now
		for _, tok := range []domain.JoinToken{token("good"), token("revoked"), expired} {
			if err := db.AddToken(ctx, nil, tok, 200); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.RevokeToken(ctx, nil, "revoked"); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			hash string
			want domain.Code
		}{{"good", ""}, {"good", domain.NotFound}, {"revoked", domain.NotFound}, {"expired", domain.NotFound}, {"unknown", domain.NotFound}} {
			if err := db.Redeem(t.Context(), nil, step.hash, record(step.hash)); domain.CodeOf(err) != step.want {
				t.Errorf("redeeming %s: %v, want %q", step.hash, err, step.want)
			}
		}
		used, err := db.Token(ctx, "good")
		if err != nil || used.UsedBy != "good" || !used.UsedAt.Equal(now) {
			t.Errorf("the used token is %+v, %v", used, err)
		}
		if err := db.RevokeToken(ctx, nil, "good"); domain.CodeOf(err) != domain.NotFound {
			t.Errorf("revoking a used token: %v", err)
		}
		agents, err := db.AgentRecords(ctx)
		if err != nil || len(agents) != 1 || agents[0] != record("good") {
			t.Errorf("agents are %+v, %v", agents, err)
		}
	})
}

func TestRedemptionsAtOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := t.Context()
		for i := range 10 {
			if err := db.AddToken(ctx, nil, token(fmt.Sprint(i)), 200); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		codes := make(chan domain.Code, 100)
		for i := range 100 { // ten agents for each token
			wg.Go(func() { codes <- domain.CodeOf(db.Redeem(t.Context(), nil, fmt.Sprint(i%10), record(fmt.Sprint(i)))) })
		}
		wg.Wait()
		close(codes)
		count := map[domain.Code]int{}
		for code := range codes {
			count[code]++
		}
		if count[""] != 10 || count[domain.NotFound] != 90 {
			t.Errorf("outcomes are %v, want 10 successes and 90 not found", count)
		}
		agents, err := db.AgentRecords(ctx)
		if err != nil || len(agents) != 10 {
			t.Fatalf("%d agents, %v, want 10", len(agents), err)
		}
		for _, a := range agents { // each token names the agent that is stored
			var n int
			fmt.Sscan(a.ID, &n)
			if tok, err := db.Token(ctx, fmt.Sprint(n%10)); err != nil || tok.UsedBy != a.ID {
				t.Errorf("token %d was used by %q, stored is %q (%v)", n%10, tok.UsedBy, a.ID, err)
			}
		}
	})
}

func TestAgentChanges(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := t.Context()
		if err := db.AddProjects(ctx, nil, "", domain.Project{Name: "alpha", URL: "http://alpha"}); err != nil {
			t.Fatal(err)
		}
		if err := db.AddToken(ctx, nil, token("t"), 200); err != nil {
			t.Fatal(err)
		}
		if err := db.Redeem(t.Context(), nil, "t", record("a")); err != nil {
			t.Fatal(err)
		}
		beat := domain.AgentBeat{Agent: domain.Agent{ID: "a", State: domain.AgentFailed, Detail: "exit status 1", StateSince: now.Add(time.Millisecond), LastSeen: now.Add(2 * time.Millisecond)}}
		if err := db.SaveBeats(ctx, []domain.AgentBeat{{Agent: domain.Agent{ID: "gone"}}, beat}); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			name string
			err  error
			want domain.Code
		}{
			{"label", db.LabelAgent(ctx, nil, "a", "new"), ""},
			{"label of none", db.LabelAgent(ctx, nil, "b", "new"), domain.NotFound},
			{"assign", db.AssignAgent(ctx, nil, "a", "alpha"), ""},
			{"assign none", db.AssignAgent(ctx, nil, "b", "alpha"), domain.NotFound},
		} {
			if domain.CodeOf(step.err) != step.want {
				t.Errorf("%s: %v, want %q", step.name, step.err, step.want)
			}
		}
		want := record("a")
		want.Label, want.Project = "new", "alpha"
		want.State, want.Detail, want.StateSince, want.LastSeen = beat.State, beat.Detail, beat.StateSince, beat.LastSeen
		if agents, err := db.AgentRecords(ctx); err != nil || len(agents) != 1 || agents[0] != want {
			t.Errorf("agents are %+v, %v, want %+v", agents, err, want)
		}
		for _, want := range []domain.Code{"", domain.NotFound} {
			if err := db.RemoveAgent(ctx, nil, "a"); domain.CodeOf(err) != want {
				t.Errorf("removing: %v, want %q", err, want)
			}
		}
	})
}

func TestTokens(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := t.Context()
		late := token("late")
		late.ExpiresAt = late.ExpiresAt.Add(time.Millisecond)
		for _, tok := range []domain.JoinToken{late, token("early"), token("used")} {
			if err := db.AddToken(ctx, nil, tok, 200); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Redeem(t.Context(), nil, "used", record("a")); err != nil {
			t.Fatal(err)
		}
		unused, err := db.UnusedTokens(ctx, now)
		if err != nil || len(unused) != 2 || unused[0] != token("early") || unused[1] != late {
			t.Errorf("unused tokens are %+v, %v", unused, err)
		}
		if err := db.ForgetTokens(ctx, late.ExpiresAt); err != nil {
			t.Fatal(err)
		}
		for hash, want := range map[string]domain.Code{"early": domain.NotFound, "used": domain.NotFound, "late": ""} {
			if _, err := db.Token(ctx, hash); domain.CodeOf(err) != want {
				t.Errorf("token %s after forgetting: %v, want %q", hash, err, want)
			}
		}
	})
}
