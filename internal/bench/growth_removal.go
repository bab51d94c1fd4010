package main

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// measureRemoval has a gateway remove all events but the last of each project, and returns how long other writes wait
// meanwhile: the median and the longest within 15 s, in milliseconds.
func measureRemoval(binary, dir string) (median, longest float64, err error) {
	gateway, _, err := start(binary, "gateway", "--data", dir, "--keep-events", "100s")
	if err != nil {
		return 0, 0, err
	}
	defer gateway.stop()
	time.Sleep(2 * time.Second) // the removal begins a second after the start
	var times []float64
	for n := range 300 {
		began := time.Now()
		status, err := send(http.MethodPost, gateway.url()+"/api/gateway/switch",
			fmt.Sprintf(`{"project":"project-%04d"}`, n%eventProjects))
		if err != nil {
			return 0, 0, err
		}
		if status != http.StatusOK {
			return 0, 0, fmt.Errorf("another project could not be made active: status %d", status)
		}
		times = append(times, float64(time.Since(began).Microseconds())/1000)
		time.Sleep(50 * time.Millisecond)
	}
	slices.Sort(times)
	return times[len(times)/2], times[len(times)-1], nil
}
