package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// measureDelivery follows 1,000 feeds, with 5 % of the projects dead and 2 % hanging. It measures the cost while idle,
// and how long an event takes to a stream's reader at 100 events a second.
func measureDelivery(binary string) ([]row, error) {
	const count, events = 1000, 1000
	projects, err := startProjects(count)
	if err != nil {
		return nil, err
	}
	defer projects.stop()
	gateway, err := startGateway(binary, projects, count, true)
	if err != nil {
		return nil, err
	}
	defer gateway.stop()
	response, err := http.Get(gateway.url() + "/api/gateway/events/stream")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	delays := make(chan float64, events)
	go func() {
		defer close(delays)
		lines := bufio.NewScanner(response.Body)
		for seen := 0; seen < events && lines.Scan(); {
			data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
			var event struct {
				Reason string `json:"reason"`
			}
			if !ok || json.Unmarshal(data, &event) != nil {
				continue
			}
			pushed, _ := strconv.ParseInt(event.Reason, 10, 64)
			delays <- float64(time.Now().UnixNano()-pushed) / 1e6
			seen++
		}
	}()
	time.Sleep(15 * time.Second) // until all feeds are being followed
	idle := cpuShare(gateway, feedRound)
	resident := memory(gateway.pid())
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range events {
		<-tick.C
		hundred := i * 7 % count / 100 * 100 // the last seven of each hundred are dead or hang
		projects.push(hundred + i*13%93)
	}
	var got []float64
	deadline := time.After(10 * time.Second)
collect:
	for len(got) < events {
		select {
		case delay, ok := <-delays:
			if !ok {
				break collect
			}
			got = append(got, delay)
		case <-deadline:
			break collect
		}
	}
	if len(got) == 0 {
		return nil, fmt.Errorf("no event arrived")
	}
	slices.Sort(got)
	p50, p99 := got[len(got)/2], got[len(got)*99/100]
	return []row{
		{
			"1,000 followed feeds, idle", fmt.Sprintf("%.1f %% of a core, %.0f MiB", idle, resident),
			"≤ 1 % of a core, ≤ 90 MiB", idle <= 1 && resident <= 90,
		},
		{
			"event at a project server → stream reader, 1,000 projects",
			fmt.Sprintf("p50 %.1f ms, p99 %.1f ms, %d of %d lost", p50, p99, events-len(got), events),
			"p99 ≤ 10 ms, none lost", p99 <= 10 && len(got) == events,
		},
	}, nil
}
