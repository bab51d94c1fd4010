package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"switchyard/internal/pgtest"
)

// takeOverProjects is the number of projects that one gateway takes over from another.
const takeOverProjects = 200

// measureGateways measures several gateways on one PostgreSQL: how long an event takes from one to readers at another,
// how long it takes until another takes over the projects of one that ends, and how many stories are claimed.
func measureGateways(binary string) (table []row, err error) {
	postgres, err := pgtest.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "no PostgreSQL here:", err)
		return nil, nil
	}
	defer postgres.Close()
	for _, measure := range []func(string, *pgtest.Server) ([]row, error){
		measureAcross, measureTakeOver, measureClaims, measureSharedHooks,
	} {
		rows, err := measure(binary, postgres)
		if err != nil {
			return nil, err
		}
		table = append(table, rows...)
	}
	return table, nil
}

// startGateways starts count gateways on a new database, and registers the projects.
func startGateways(binary string, postgres *pgtest.Server, projects *projectServers, count int) (all []*process,
	stop func(), err error,
) {
	stop = func() {
		for _, g := range all {
			g.stop()
		}
	}
	database, err := postgres.Database(context.Background())
	if err != nil {
		return nil, stop, err
	}
	for range count { // the first one registers the projects
		g, err := startGateway(binary, projects, len(projects.servers), false, "--database", database)
		if err != nil {
			return all, stop, err
		}
		all = append(all, g)
	}
	return all, stop, nil
}

// arrival is the arrival of an event, whose reason is the time when it was recorded, at a gateway's reader.
type arrival struct {
	pushed int64
	after  time.Duration
}

// follow reads new events of the merged stream at a gateway until done is closed.
func follow(gateway *process, done <-chan struct{}, arrived func(arrival)) error {
	body, _, err := get(gateway.url() + "/api/gateway/events?before=&limit=1")
	if err != nil {
		return err
	}
	var page struct {
		Events []struct {
			ID     int64
			Reason string
		}
		Next int64
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return err
	}
	var after int64
	if len(page.Events) > 0 {
		after = page.Events[0].ID
	}
	for {
		select {
		case <-done:
			return nil
		default:
		}
		body, _, err := get(fmt.Sprintf("%s/api/gateway/events?limit=1000&wait=1s&after=%d", gateway.url(), after))
		if err != nil {
			return err
		}
		now := time.Now()
		if err := json.Unmarshal(body, &page); err != nil {
			return err
		}
		after = page.Next
		for _, e := range page.Events {
			pushed, _ := strconv.ParseInt(e.Reason, 10, 64)
			arrived(arrival{pushed, now.Sub(time.Unix(0, pushed))})
		}
	}
}

// measureAcross measures how long an event takes to a reader at the gateway that does not follow its project.
func measureAcross(binary string, postgres *pgtest.Server) ([]row, error) {
	const count, events = 100, 1000
	projects, err := startProjects(count)
	if err != nil {
		return nil, err
	}
	defer projects.stop()
	gateways, stop, err := startGateways(binary, postgres, projects, 2)
	defer stop()
	if err != nil {
		return nil, err
	}
	if err := awaitFollowed(projects); err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second) // until they have divided up the projects
	done := make(chan struct{})
	var mu sync.Mutex
	var readers sync.WaitGroup
	taken := map[int64][]time.Duration{}
	failures := make(chan error, len(gateways))
	for _, g := range gateways {
		readers.Go(func() {
			failures <- follow(g, done, func(a arrival) {
				mu.Lock()
				defer mu.Unlock()
				taken[a.pushed] = append(taken[a.pushed], a.after)
			})
		})
	}
	time.Sleep(time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range events {
		<-tick.C
		projects.push(i * 7 % count)
	}
	time.Sleep(2 * time.Second)
	close(done)
	readers.Wait()
	for range gateways {
		if err := <-failures; err != nil {
			return nil, err
		}
	}
	// The gateway that does not follow the project gets the event from the database, after the one that does.
	var whole, across []float64
	missing := events - len(taken)
	for _, times := range taken {
		if len(times) != len(gateways) {
			missing++
			continue
		}
		slices.Sort(times)
		whole = append(whole, milliseconds(times[1]))
		across = append(across, milliseconds(times[1]-times[0]))
	}
	if len(whole) == 0 {
		return nil, fmt.Errorf("no event arrived")
	}
	slices.Sort(whole)
	slices.Sort(across)
	n := len(whole)
	return []row{
		{
			"two gateways: read at one → read at the other, 100 events/s",
			fmt.Sprintf("p50 %.1f ms, p99 %.1f ms", across[n/2], across[n*99/100]), "p99 ≤ 20 ms", across[n*99/100] <= 20,
		},
		{
			"two gateways: event at a project server → read at the gateway that does not follow it",
			fmt.Sprintf("p50 %.1f ms, p99 %.1f ms, %d of %d lost", whole[n/2], whole[n*99/100], missing, events),
			"p99 ≤ 20 ms, none lost", whole[n*99/100] <= 20 && missing == 0,
		},
	}, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// awaitFollowed waits until each project's feed has been requested.
func awaitFollowed(projects *projectServers) error {
	for began := time.Now(); projects.followed.Load() < int64(len(projects.servers)); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			return fmt.Errorf("%d of %d feeds are followed", projects.followed.Load(), len(projects.servers))
		}
	}
	return nil
}

// measureTakeOver measures how long events are delayed when the gateway that follows their projects is killed or
// stopped.
func measureTakeOver(binary string, postgres *pgtest.Server) ([]row, error) {
	var table []row
	for _, c := range []struct {
		what, goal string
		limit      time.Duration
		end        func(*process)
	}{
		{
			"take-over after kill -9", "≤ 5 s", 5 * time.Second,
			func(p *process) { _ = p.command.Process.Kill(); _ = p.command.Wait() },
		},
		{"take-over after a clean stop", "≤ 1 s", time.Second, (*process).stop},
	} {
		took, err := takeOver(binary, postgres, c.end)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.what, err)
		}
		table = append(table, row{
			fmt.Sprintf("%s, %d projects", c.what, takeOverProjects), fmt.Sprintf("%.1f s", took.Seconds()), c.goal,
			took <= c.limit,
		})
	}
	return table, nil
}

// takeOver ends one of two gateways. It records events at that moment, and returns how long it took until the last of
// them arrived at the other gateway.
func takeOver(binary string, postgres *pgtest.Server, end func(*process)) (time.Duration, error) {
	projects, err := startProjects(takeOverProjects)
	if err != nil {
		return 0, err
	}
	defer projects.stop()
	gateways, _, err := startGateways(binary, postgres, projects, 2)
	if err != nil {
		return 0, err
	}
	defer gateways[1].stop()
	if err := awaitFollowed(projects); err != nil {
		return 0, err
	}
	time.Sleep(3 * time.Second)
	done, all := make(chan struct{}), make(chan struct{})
	seen, failure := 0, make(chan error, 1)
	go func() {
		failure <- follow(gateways[1], done, func(arrival) {
			if seen++; seen == takeOverProjects {
				close(all)
			}
		})
	}()
	time.Sleep(time.Second)
	began := time.Now()
	end(gateways[0])
	for n := range takeOverProjects {
		projects.push(n)
	}
	select {
	case <-all:
	case <-time.After(time.Minute):
	}
	took := time.Since(began)
	close(done)
	if err := <-failure; err != nil {
		return 0, err
	}
	if seen != takeOverProjects {
		return 0, fmt.Errorf("%d of %d events arrived", seen, takeOverProjects)
	}
	return took, nil
}
