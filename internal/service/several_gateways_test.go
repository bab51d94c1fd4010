package service_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

func TestTheRegistryIsOne(t *testing.T) {
	ctx := t.Context()
	peers := severalGateways(t, 3)
	a, b, c := peers[0], peers[1], peers[2]
	// A name can be taken only once, on whichever gateway, and a project that has just been added can be made active.
	var taken, added atomic.Int64
	var adding sync.WaitGroup
	for i := range 30 {
		adding.Go(func() {
			switch _, err := peers[i%3].Projects.Add(ctx, "alpha", "http://alpha", nil); domain.CodeOf(err) {
			case "":
				added.Add(1)
			case domain.Conflict:
				taken.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	adding.Wait()
	if added.Load() != 1 || taken.Load() != 29 {
		t.Errorf("the name was given %d times and refused %d times", added.Load(), taken.Load())
	}
	secret := domain.Secret("secret")
	if _, err := a.Projects.Add(ctx, "beta", "http://beta", &secret); err != nil {
		t.Fatal(err)
	}
	if err := b.Projects.Switch(ctx, "beta"); err != nil {
		t.Errorf("a project that was just added: %v", err)
	}
	if _, err := c.Projects.Update(ctx, "beta", "http://beta/2", nil); err != nil {
		t.Error(err)
	}
	for i, p := range peers {
		waittest.Until(t, "the registry", func() bool {
			found, _ := p.Projects.Registry().Find("beta")
			return found.URL == "http://beta/2" && found.Token == secret && p.Projects.Registry().Active == "beta"
		})
		if version := p.Projects.Registry().Version; version > 5 {
			t.Errorf("gateway %d published %d times", i+1, version)
		}
	}
	// A removal can be undone on another gateway, once, and restores the active project and the assignments.
	agent := c.join("builder")
	if _, err := b.Agents.Assign(ctx, agent.ID, "beta"); err != nil {
		t.Fatal(err)
	}
	removed, err := a.Projects.Remove(ctx, "beta")
	if err != nil {
		t.Fatal(err)
	}
	id, err := a.Projects.KeepRemoval(ctx, removed)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Projects.Switch(ctx, "beta"); domain.CodeOf(err) != domain.NotFound {
		t.Errorf("a project that was just removed: %v", err)
	}
	if _, err := c.Agents.Assign(ctx, agent.ID, "beta"); domain.CodeOf(err) != domain.Invalid {
		t.Errorf("an agent was assigned to a project that was just removed: %v", err)
	}
	if _, agents, err := b.Projects.UndoRemoval(ctx, id); err != nil || agents != 1 {
		t.Errorf("undone: %d agents, %v", agents, err)
	}
	if _, _, err := c.Projects.UndoRemoval(ctx, id); domain.CodeOf(err) != domain.NotFound {
		t.Errorf("undone twice: %v", err)
	}
	waittest.Until(t, "the project is back", func() bool {
		p, _ := c.Projects.Registry().Find("beta")
		known, _ := c.Agents.Find(agent.ID)
		return p.Token == secret && c.Projects.Registry().Active == "beta" && known.Project == "beta"
	})
}

// TestNothingRefersToWhatIsRemovedMeanwhile: of concurrent changes on two gateways, the database accepts only consistent ones.
func TestNothingRefersToWhatIsRemovedMeanwhile(t *testing.T) {
	ctx := t.Context()
	peers := severalGateways(t, 2)
	agent := peers[0].join("builder")
	for range 20 {
		peers[0].project("alpha", "http://alpha")
		var both sync.WaitGroup
		both.Go(func() { _, _ = peers[0].Projects.Remove(ctx, "alpha") })
		both.Go(func() {
			_ = peers[1].Projects.Switch(ctx, "alpha")
			_, _ = peers[1].Agents.Assign(ctx, agent.ID, "alpha")
			_, _, _ = peers[1].Agents.IssueToken(ctx, agent.ID)
		})
		both.Wait()
		active, projects, err := peers[0].db.Registry(ctx)
		if err != nil {
			t.Fatal(err)
		}
		records, err := peers[0].db.AgentRecords(ctx)
		if err != nil {
			t.Fatal(err)
		}
		tokens, err := peers[0].db.NamedTokens(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(projects) == 0 && (active != "" || records[0].Project != "" || len(tokens) != 0) {
			t.Fatalf("the project is gone, but it is active: %q, assigned to: %q, has tokens: %d", active, records[0].Project, len(tokens))
		}
	}
}

func TestAnAgentMayCallAnyGateway(t *testing.T) {
	ctx := t.Context()
	peers := severalGateways(t, 3)
	a, b, c := peers[0], peers[1], peers[2]
	a.project("alpha", "http://alpha")
	// Only one redemption of a token succeeds, and its agent is known everywhere at once.
	token, _, err := a.Agents.CreateJoinToken(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	var joined atomic.Int64
	var agent domain.Agent
	var secret domain.Secret
	var joining sync.WaitGroup
	for i := range 30 {
		joining.Go(func() {
			if got, s, err := peers[i%3].Agents.Join(ctx, token, nil, "1.0"); err == nil {
				joined.Add(1)
				agent, secret = got, s
			} else if domain.CodeOf(err) != domain.Unauthorized {
				t.Error(err)
			}
		})
	}
	joining.Wait()
	if joined.Load() != 1 {
		t.Fatalf("%d agents joined with one token", joined.Load())
	}
	for _, p := range peers {
		if err := p.Agents.CheckSecret(ctx, agent.ID, secret); err != nil {
			t.Errorf("right after it joined: %v", err)
		}
	}
	// It is alive everywhere, whichever gateway holds its call, and an assignment ends the call.
	answered := make(chan domain.Agent)
	hold := func(p *peer, assigned string) {
		go func() {
			running := domain.AgentRunning
			got, err := p.Agents.Heartbeat(context.Background(), agent.ID, service.Heartbeat{State: &running, Assigned: assigned, Wait: held})
			if err != nil {
				t.Error(err)
			}
			answered <- got
		}()
		waittest.Until(t, "the call is held", func() bool { known, _ := p.Agents.Find(agent.ID); return known.Connected })
	}
	hold(b, "")
	for _, p := range peers {
		waittest.Until(t, "what it says is known", func() bool {
			known, _ := p.Agents.Find(agent.ID)
			return known.State == domain.AgentRunning && known.Presence == domain.AgentAlive
		})
	}
	began := time.Now()
	c.assign(agent.ID, "alpha")
	if got := <-answered; got.Project != "alpha" || time.Since(began) > held/2 {
		t.Errorf("after %v it was told of %q", time.Since(began), got.Project)
	}
	// A call to another gateway ends the one before.
	hold(b, "alpha")
	began = time.Now()
	waittest.Until(t, "a call that is later", func() bool { return time.Now().UnixMilli() > began.UnixMilli() })
	hold(c, "alpha")
	if <-answered; time.Since(began) > held/2 {
		t.Errorf("the call before was held for %v", time.Since(began))
	}
	if err := service.SaveBeats(ctx, b.Service); err != nil {
		t.Fatal(err)
	}
	later := b.join("later") // whoever knows what b says of this one knows what it said before
	working := domain.AgentRunning
	if _, err := b.Agents.Heartbeat(ctx, later.ID, service.Heartbeat{State: &working}); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the end of the call before is known", func() bool { known, _ := c.Agents.Find(later.ID); return known.State == working })
	if known, _ := c.Agents.Find(agent.ID); !known.Connected {
		t.Error("the last call was ended by the one before")
	}
	// So does a new address.
	if _, err := a.Projects.Update(ctx, "alpha", "http://moved", nil); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got.ProjectURL != "http://moved" {
		t.Errorf("it was sent to %s", got.ProjectURL)
	}
	// An agent that another gateway answered before the move learns of the new address.
	if got, err := b.Agents.Heartbeat(ctx, agent.ID, service.Heartbeat{Assigned: "alpha", Wait: held}); err != nil || got.ProjectURL != "http://moved" {
		t.Errorf("it was sent to %s, %v", got.ProjectURL, err)
	}
	stopped := domain.AgentStopped
	waittest.Until(t, "the agent that joined elsewhere is known", func() bool { _, known := a.Agents.Find(later.ID); return known })
	for _, id := range []string{agent.ID, later.ID} {
		if _, err := a.Agents.Heartbeat(ctx, id, service.Heartbeat{State: &stopped}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range peers {
		waittest.Until(t, "it has left", func() bool { return len(p.Agents.Alive()) == 0 })
	}
	if err := c.Agents.Remove(ctx, agent.ID); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "it is gone", func() bool { _, known := b.Agents.Find(agent.ID); return !known })
}

// held is how long a call is held if nothing ends it.
const held = time.Minute

// TestWrongClocksEndNobody: an agent's silence is measured by the database's clock.
func TestWrongClocksEndNobody(t *testing.T) {
	ctx := t.Context()
	peers := severalGateways(t, 2)
	agent := peers[0].join("builder")
	waittest.Until(t, "it is known", func() bool { _, known := peers[1].Agents.Find(agent.ID); return known })
	for _, off := range []time.Duration{-time.Hour, 10 * 24 * time.Hour} {
		beat := domain.AgentBeat{Agent: domain.Agent{ID: agent.ID, State: domain.AgentIdle, StateSince: time.Now(), LastSeen: time.Now().Add(off)}}
		if err := peers[0].db.SaveBeats(ctx, []domain.AgentBeat{beat}); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "it was seen", func() bool {
			known, _ := peers[1].Agents.Find(agent.ID)
			return known.LastSeen.UnixMilli() == beat.LastSeen.UnixMilli() && known.Presence == domain.AgentAlive
		})
	}
}

func TestAcknowledgementsHoldEverywhere(t *testing.T) {
	ctx := t.Context()
	peers := severalGateways(t, 2)
	agent := peers[0].join("builder")
	failed := domain.AgentFailed
	peers[0].beat(agent.ID, service.Heartbeat{State: &failed})
	alert := func(p *peer) (a domain.Alert) {
		for _, item := range p.Alerts.List(ctx).Items {
			a = item
		}
		return a
	}
	waittest.Until(t, "the alert", func() bool { return alert(peers[1]).Kind == domain.AlertAgentFailed })
	if err := peers[1].Alerts.Acknowledge(ctx, alert(peers[1]).Key(), time.Hour); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "it is acknowledged", func() bool { return alert(peers[0]).Acknowledged != nil })
	if err := peers[0].Alerts.Reopen(ctx, alert(peers[0]).Key()); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "it is open again", func() bool { return alert(peers[1]).Acknowledged == nil })
}

func TestTheBotIsOne(t *testing.T) {
	ctx := t.Context()
	peers := severalGateways(t, 2)
	a, b := peers[0], peers[1]
	// A save on any gateway restarts the bot where it runs, with the new configuration, before the response.
	for i := range 3 {
		name := domain.Secret(fmt.Sprint("bot ", i))
		if err := peers[i%2].Bot.Save(ctx, domain.BotConfig{Transport: domain.BotTeam, Settings: map[string]domain.Secret{"username": name}}); err != nil {
			t.Fatal(err)
		}
		if a.bot.mu.Lock(); a.bot.config.Settings["username"] != name {
			t.Errorf("the bot runs with %+v", a.bot.config)
		}
		a.bot.mu.Unlock()
	}
	waittest.Until(t, "its status", func() bool {
		got := b.Bot.Status()
		return got.Transport == domain.BotTeam && got.State == domain.BotConnected && got.Since.UnixMilli() == 4711 && len(got.Rooms) == 1
	})
	if restarts := a.bot.restarted(); restarts != 3 {
		t.Errorf("it was restarted %d times for 3 saves", restarts)
	}
	// That gateway also sends test messages, and returns the result. The bot's state stays, and is not stored again for that.
	told := a.told.Load()
	if err := b.Bot.Test(ctx); err != nil {
		t.Errorf("a test message: %v", err)
	}
	if err := b.Bot.Test(ctx); domain.CodeOf(err) != domain.BadGateway || domain.MessageOf(err) != "not sent to #qa" {
		t.Errorf("a test message that fails: %v", err)
	}
	if byA, byB := a.bot.tested(), b.bot.tested(); byA != 2 || byB != 0 {
		t.Errorf("%d and %d test messages were sent", byA, byB)
	}
	if more := a.told.Load() - told; more != 0 {
		t.Errorf("a state that stays was stored %d times", more)
	}
}

// TestTheBotsFileIsImportedOnce: afterwards the configuration is in the database, and the page names a file that differs.
func TestTheBotsFileIsImportedOnce(t *testing.T) {
	ctx := t.Context()
	url := pgtest.Database(t)
	one := &peer{file: &memoryFile{domain.BotConfig{Transport: domain.BotTeam, Settings: map[string]domain.Secret{"team_bot_token": "first"}}}}
	one.open(t, url, "one")
	other := &peer{file: &memoryFile{domain.BotConfig{Transport: domain.BotTeam, Settings: map[string]domain.Secret{"team_bot_token": "second"}}}}
	other.open(t, url, "other")
	for _, p := range []*peer{one, other} {
		c, err := p.Bot.Config(ctx)
		if err != nil || c.Settings["team_bot_token"] != "first" {
			t.Errorf("the configuration is %+v, %v", c, err)
		}
	}
	if one.Bot.IgnoredFile(ctx) != "" || other.Bot.IgnoredFile(ctx) != "bot.toml" {
		t.Errorf("files that are not looked at: %q, %q", one.Bot.IgnoredFile(ctx), other.Bot.IgnoredFile(ctx))
	}
}

func TestSignInFlowsAndWebhooksAreTakenOnce(t *testing.T) {
	ctx := t.Context()
	peers := severalGateways(t, 3)
	want := domain.SignInFlow{Verifier: "v", RedirectURI: "http://localhost:3000/callback"}
	if err := peers[0].db.AddSignInFlow(ctx, "state", want); err != nil {
		t.Fatal(err)
	}
	var taken, logins, requests atomic.Int64
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			db := peers[i%3].db
			if got, err := db.TakeSignInFlow(ctx, "state"); err == nil {
				taken.Add(1)
				if got != want {
					t.Errorf("the flow is %+v", got)
				}
			} else if domain.CodeOf(err) != domain.NotFound {
				t.Error(err)
			}
			for count, once := range map[*atomic.Int64]func(context.Context, string) (bool, error){&logins: db.SpendLogin, &requests: db.RecordBotRequest} {
				if first, err := once(ctx, "id"); err != nil {
					t.Error(err)
				} else if first {
					count.Add(1)
				}
			}
		})
	}
	all.Wait()
	if taken.Load() != 1 || logins.Load() != 1 || requests.Load() != 1 {
		t.Errorf("taken %d, %d and %d times", taken.Load(), logins.Load(), requests.Load())
	}
	var keys [3]string
	for i, p := range peers {
		key, err := p.db.SessionKey(ctx)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = string(key)
	}
	if len(keys[0]) != 32 || keys[0] != keys[1] || keys[0] != keys[2] {
		t.Error("the key of sessions is not one of 32 bytes")
	}
}
