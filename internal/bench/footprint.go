package main

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// measureFootprint measures a cold start with an existing database, memory and the size of the binary.
func measureFootprint(binary string) ([]row, error) {
	projects, err := startProjects(10)
	if err != nil {
		return nil, err
	}
	defer projects.stop()
	gateway, err := startGateway(binary, projects, 10, false)
	if err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second)
	idle := memory(gateway.pid())
	for range 200 {
		if _, _, err := get(gateway.url() + "/api/gateway/pipeline"); err != nil {
			return nil, err
		}
	}
	for _, path := range []string{"/", "/api/gateway", "/events"} {
		if _, err := load(gateway.address, path, time.Second, "Accept-Encoding: gzip"); err != nil {
			return nil, err
		}
	}
	loaded := memory(gateway.pid())
	data := gateway.command.Args[slices.Index(gateway.command.Args, "--data")+1]
	gateway.stop()
	var starts []float64
	for range 11 {
		again, took, err := start(binary, "gateway", "--data", data)
		if err != nil {
			return nil, err
		}
		again.stop()
		starts = append(starts, float64(took.Microseconds())/1000)
	}
	info, err := os.Stat(binary)
	if err != nil {
		return nil, err
	}
	first, size := median(starts), float64(info.Size())/(1<<20)
	return []row{
		{"cold start to first answer, existing database", fmt.Sprintf("%.1f ms", first), "≤ 20 ms", first <= 20},
		{"private memory, idle / loaded", fmt.Sprintf("%.1f / %.1f MiB", idle, loaded), "≤ 10 / – MiB", idle <= 10},
		{"stripped binary", fmt.Sprintf("%.1f MiB", size), "≤ 34 MiB", size <= 34},
	}, nil
}
