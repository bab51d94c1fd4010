package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// heldAgents is the number of agents whose heartbeats are held at once.
	heldAgents = 5000
	// heldFor is how long they are watched: two rounds of heartbeats, each held for a third of the agent timeout of 45 s.
	heldFor = 30 * time.Second
)

// measureAgents joins agents and holds a heartbeat of each.
func measureAgents(binary string) ([]row, error) {
	gateway, err := startGateway(binary, nil, 0, false)
	if err != nil {
		return nil, err
	}
	defer gateway.stop()
	beats, err := joinAgents(gateway.url(), heldAgents)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	failures := make(chan error, heldAgents)
	for i, beat := range beats {
		done.Go(func() {
			// They come one after the other, so that their answers are spread over the time too.
			time.Sleep(heldFor / 2 * time.Duration(i) / heldAgents)
			if err := holdBeats(ctx, gateway.address, beat); err != nil && ctx.Err() == nil {
				failures <- err
			}
		})
	}
	time.Sleep(heldFor/2 + 2*time.Second)
	before := cpuTime(gateway.pid())
	time.Sleep(heldFor)
	share := 100 * (cpuTime(gateway.pid()) - before).Seconds() / heldFor.Seconds()
	resident := memory(gateway.pid())
	cancel()
	done.Wait()
	select {
	case err := <-failures:
		return nil, err
	default:
	}
	return []row{{
		fmt.Sprintf("%d agents with held heartbeats, CPU of a core / resident memory", heldAgents),
		fmt.Sprintf("%.1f %% / %.0f MiB", share, resident), "≤ 10 % / 100 MiB", share <= 10 && resident <= 100,
	}}, nil
}

// joinAgents returns the heartbeat request of each of n new agents.
func joinAgents(gateway string, n int) (beats []string, err error) {
	const body = "{}"
	for range n {
		var given struct{ Token string }
		var joined struct {
			Agent  struct{ ID string }
			Secret string
		}
		if err := post(gateway+"/gateway/tokens", nil, &given); err != nil {
			return nil, err
		}
		if err := post(gateway+"/gateway/agents", map[string]string{"token": given.Token}, &joined); err != nil {
			return nil, err
		}
		beats = append(beats, fmt.Sprintf("POST /gateway/agents/%s/heartbeat?assigned=&wait=30s HTTP/1.1\r\nHost: localhost\r\n"+
			"Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", joined.Agent.ID, joined.Secret, len(body), body))
	}
	return beats, nil
}

func post(url string, in, out any) error {
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	response, err := http.Post(url, "application/json", strings.NewReader(string(data)))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(out)
}

// holdBeats sends a heartbeat, again at each answer, until ctx ends.
func holdBeats(ctx context.Context, address, request string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	reader := bufio.NewReaderSize(conn, 2<<10)
	for {
		if _, err := conn.Write([]byte(request)); err != nil {
			return err
		}
		if err := readAnswer(reader, http.StatusOK); err != nil {
			return err
		}
	}
}
