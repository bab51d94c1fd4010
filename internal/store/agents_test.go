package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"switchyard/internal/yard"
)

const (
	nowMS  = int64(1_000_000)
	hourMS = int64(3_600_000)
)

func record(id string) yard.AgentRecord {
	return yard.AgentRecord{
		ID: id, Label: "label " + id, Version: "1.0", SecretHash: "secret " + id, State: yard.AgentIdle,
		JoinedAtMS: nowMS, StateSinceMS: nowMS, LastSeenMS: nowMS,
	}
}

func token(hash string) yard.JoinToken {
	return yard.JoinToken{Hash: hash, CreatedAtMS: nowMS - hourMS, ExpiresAtMS: nowMS + hourMS}
}

func TestRedeem(t *testing.T) {
	db, ctx := openStore(t), context.Background()
	expired := token("expired")
	expired.ExpiresAtMS = nowMS
	for _, tok := range []yard.JoinToken{token("good"), token("revoked"), expired} {
		if err := db.AddToken(ctx, tok); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.RevokeToken(ctx, "revoked"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		hash string
		want yard.Code
	}{{"good", ""}, {"good", yard.NotFound}, {"revoked", yard.NotFound}, {"expired", yard.NotFound}, {"unknown", yard.NotFound}} {
		if err := db.Redeem(step.hash, record(step.hash)); yard.CodeOf(err) != step.want {
			t.Errorf("redeeming %s: %v, want %q", step.hash, err, step.want)
		}
	}
	used, err := db.Token(ctx, "good")
	if err != nil || used.UsedBy != "good" || used.UsedAtMS != nowMS {
		t.Errorf("the used token is %+v, %v", used, err)
	}
	if err := db.RevokeToken(ctx, "good"); yard.CodeOf(err) != yard.NotFound {
		t.Errorf("revoking a used token: %v", err)
	}
	agents, err := db.AgentRecords(ctx)
	if err != nil || len(agents) != 1 || agents[0] != record("good") {
		t.Errorf("agents are %+v, %v", agents, err)
	}
}

func TestRedemptionsAtOnce(t *testing.T) {
	db, ctx := openStore(t), context.Background()
	for i := range 10 {
		if err := db.AddToken(ctx, token(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	codes := make(chan yard.Code, 100)
	for i := range 100 { // ten agents for each token
		wg.Go(func() { codes <- yard.CodeOf(db.Redeem(fmt.Sprint(i%10), record(fmt.Sprint(i)))) })
	}
	wg.Wait()
	close(codes)
	count := map[yard.Code]int{}
	for code := range codes {
		count[code]++
	}
	if count[""] != 10 || count[yard.NotFound] != 90 {
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
}

func TestAgentChanges(t *testing.T) {
	db, ctx := openStore(t), context.Background()
	if err := db.AddToken(ctx, token("t")); err != nil {
		t.Fatal(err)
	}
	if err := db.Redeem("t", record("a")); err != nil {
		t.Fatal(err)
	}
	beat := yard.AgentBeat{ID: "a", State: yard.AgentFailed, Detail: "exit status 1", StateSinceMS: nowMS + 1, LastSeenMS: nowMS + 2}
	if err := db.SaveBeats(ctx, []yard.AgentBeat{{ID: "gone"}, beat}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		err  error
		want yard.Code
	}{
		{"label", db.LabelAgent(ctx, "a", "new"), ""},
		{"label of none", db.LabelAgent(ctx, "b", "new"), yard.NotFound},
		{"assign", db.AssignAgent(ctx, "a", "alpha"), ""},
		{"assign none", db.AssignAgent(ctx, "b", "alpha"), yard.NotFound},
	} {
		if yard.CodeOf(step.err) != step.want {
			t.Errorf("%s: %v, want %q", step.name, step.err, step.want)
		}
	}
	want := record("a")
	want.Label, want.AssignedProject = "new", "alpha"
	want.State, want.Detail, want.StateSinceMS, want.LastSeenMS = beat.State, beat.Detail, beat.StateSinceMS, beat.LastSeenMS
	if agents, err := db.AgentRecords(ctx); err != nil || len(agents) != 1 || agents[0] != want {
		t.Errorf("agents are %+v, %v, want %+v", agents, err, want)
	}
	for _, want := range []yard.Code{"", yard.NotFound} {
		if err := db.RemoveAgent(ctx, "a"); yard.CodeOf(err) != want {
			t.Errorf("removing: %v, want %q", err, want)
		}
	}
}

func TestTokens(t *testing.T) {
	db, ctx := openStore(t), context.Background()
	late := token("late")
	late.ExpiresAtMS++
	for _, tok := range []yard.JoinToken{late, token("early"), token("used")} {
		if err := db.AddToken(ctx, tok); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Redeem("used", record("a")); err != nil {
		t.Fatal(err)
	}
	unused, err := db.UnusedTokens(ctx, nowMS)
	if err != nil || len(unused) != 2 || unused[0] != token("early") || unused[1] != late {
		t.Errorf("unused tokens are %+v, %v", unused, err)
	}
	if err := db.ForgetTokens(ctx, late.ExpiresAtMS); err != nil {
		t.Fatal(err)
	}
	for hash, want := range map[string]yard.Code{"early": yard.NotFound, "used": yard.NotFound, "late": ""} {
		if _, err := db.Token(ctx, hash); yard.CodeOf(err) != want {
			t.Errorf("token %s after forgetting: %v, want %q", hash, err, want)
		}
	}
}
