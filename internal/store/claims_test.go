package store_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/domain"
)

func TestOneClaimOfAStoryIsStored(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx, now := t.Context(), time.UnixMilli(1_000_000)
		if err := db.AddProjects(ctx, nil, "", domain.Project{Name: "alpha", URL: "http://a"}); err != nil {
			t.Fatal(err)
		}
		if err := db.AddToken(ctx, nil, domain.JoinToken{Hash: "t", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}, 1); err != nil {
			t.Fatal(err)
		}
		if err := db.Redeem(ctx, nil, "t", domain.AgentRecord{Agent: domain.Agent{ID: "a", Label: "builder", State: domain.AgentIdle, JoinedAt: now}}); err != nil {
			t.Fatal(err)
		}
		claim := func(story, holder, agent string) domain.Claim {
			return domain.Claim{Project: "alpha", StoryID: story, Holder: holder, By: "b\x00y", AgentID: agent, Since: now, Stage: "1_backlog"}
		}
		var all sync.WaitGroup
		var counts [20]atomic.Int64
		for n := range 20 {
			all.Go(func() {
				var wanted []domain.Claim
				for i := range counts {
					wanted = append(wanted, claim(fmt.Sprintf("%d", i), fmt.Sprintf("holder %d", n), ""))
				}
				won, _, err := db.AddClaim(ctx, &domain.AuditEntry{}, wanted...)
				if err != nil || won < 0 {
					t.Errorf("%d: %d, %v", n, won, err)
					return
				}
				counts[won].Add(1)
			})
		}
		all.Wait()
		for i := range counts {
			if counts[i].Load() != 1 {
				t.Errorf("story %d was claimed %d times", i, counts[i].Load())
			}
		}
		won, held, err := db.AddClaim(ctx, &domain.AuditEntry{}, claim("0", "late", ""))
		if won != -1 || !strings.HasPrefix(held.Holder, "holder ") || held.Stage != "1_backlog" || err != nil {
			t.Errorf("%d, %+v, %v", won, held, err)
		}
		for what, refused := range map[string]domain.Claim{
			"a project that does not exist": {Project: "beta", StoryID: "x", Holder: "h", Since: now},
			"an agent that does not exist":  claim("x", "agent b", "b"),
		} {
			if _, _, err := db.AddClaim(ctx, &domain.AuditEntry{}, refused); domain.CodeOf(err) != domain.NotFound {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, _, err := db.AddClaim(ctx, &domain.AuditEntry{}, claim(strings.Repeat("x", 3000), "h", "")); domain.CodeOf(err) != domain.Invalid {
			t.Errorf("an id that is too long: %v", err)
		}
		mine := claim("0", "agent a", "a")
		if err := db.PassClaim(ctx, nil, held, mine); err != nil {
			t.Error(err)
		}
		if err := db.PassClaim(ctx, nil, held, mine); domain.CodeOf(err) != domain.NotFound {
			t.Errorf("passed on twice: %v", err)
		}
		if err := db.EndClaim(ctx, nil, held); domain.CodeOf(err) != domain.NotFound {
			t.Errorf("a claim that was passed on: %v", err)
		}
		if c, err := db.Claim(ctx, "alpha", "0"); err != nil || !c.Is(mine) {
			t.Errorf("%+v, %v", c, err)
		}
		if err := db.RemoveAgent(ctx, nil, "a"); err != nil {
			t.Error(err)
		}
		if _, err := db.Claim(ctx, "alpha", "0"); domain.CodeOf(err) != domain.NotFound {
			t.Errorf("the claim outlives its agent: %v", err)
		}
		if err := db.RemoveProject(ctx, nil, "alpha"); err != nil {
			t.Error(err)
		}
		if left, err := db.Claims(ctx); len(left) != 0 || err != nil {
			t.Errorf("claims outlive their project: %v, %v", left, err)
		}
	})
}

func TestWhatWasDoneToStoriesIsKeptForAWhile(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := t.Context()
		var made []domain.StoryChange
		for i := range 3 {
			made = append(made, domain.StoryChange{Project: "alpha", StoryID: "1", Type: domain.StageTransition, Value: fmt.Sprint(i), At: time.UnixMilli(int64(1000 * (i + 1))), By: "zoe", Via: domain.ChannelBot})
		}
		if err := db.RecordStoryChanges(ctx, nil, made); err != nil {
			t.Fatal(err)
		}
		if newest, err := db.StoryChanges(ctx, "alpha", "1", 2); err != nil || len(newest) != 2 || newest[0] != made[1] || newest[1] != made[2] {
			t.Errorf("%+v, %v", newest, err)
		}
		if between, err := db.ChangesBetween(ctx, time.UnixMilli(500), time.UnixMilli(3000), 2); err != nil || len(between) != 2 || between[0] != made[1] || between[1] != made[2] {
			t.Errorf("%+v, %v", between, err)
		}
		if err := db.RemoveStoryChanges(ctx, 0, time.UnixMilli(3000)); err != nil {
			t.Error(err)
		}
		if left, err := db.StoryChanges(ctx, "alpha", "1", 9); err != nil || len(left) != 1 || left[0] != made[2] {
			t.Errorf("%+v, %v", left, err)
		}
	})
}
