package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// measureGateway measures small JSON and the first page of a gateway with 50 projects.
func measureGateway(binary string) ([]row, error) {
	projects, err := startProjects(50)
	if err != nil {
		return nil, err
	}
	defer projects.stop()
	gateway, err := startGateway(binary, projects, 50, false)
	if err != nil {
		return nil, err
	}
	defer gateway.stop()
	table, err := compare(gateway, []compared{
		{"registry of 50 (`/api/gateway`)", "/api/gateway", 0, 1.5},
		{"small JSON (`/gateway/mode`)", "/gateway/mode", 0, 1.5},
	})
	if err != nil {
		return nil, err
	}
	weight, err := firstPageWeight(gateway)
	if err != nil {
		return nil, err
	}
	return append(table, row{
		"first page of 50 projects on the wire, all its assets included",
		fmt.Sprintf("%.1f kB", weight), "≤ 60 kB", weight <= 60,
	}), nil
}

// firstPageWeight returns the compressed size of the overview and all its files, in kB.
func firstPageWeight(gateway *process) (float64, error) {
	page, _, err := get(gateway.url() + "/")
	if err != nil {
		return 0, err
	}
	paths := []string{"/"}
	for _, asset := range regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`).FindAllSubmatch(page, -1) {
		paths = append(paths, string(asset[1]))
	}
	slices.Sort(paths)
	total := 0
	for _, path := range slices.Compact(paths) {
		body, _, err := get(gateway.url()+path, "Accept-Encoding", "gzip")
		if err != nil {
			return 0, err
		}
		total += len(body)
	}
	return float64(total) / 1000, nil
}

// startGateway starts a gateway, with more flags, and registers the first n projects of the project servers.
func startGateway(binary string, projects *projectServers, n int, faults bool, more ...string) (*process, error) {
	data, err := os.MkdirTemp(workDir, "data-")
	if err != nil {
		return nil, err
	}
	var config strings.Builder
	for i := range n {
		fmt.Fprintf(&config, "[[projects]]\nname = \"project-%04d\"\nurl = %q\n", i, projects.url(i, faults))
	}
	file := filepath.Join(data, "switchyard.toml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		return nil, err
	}
	gateway, _, err := start(binary, append([]string{"gateway", "--data", data, "--config", file}, more...)...)
	return gateway, err
}

// register gives the projects of a gateway the addresses of these project servers.
func register(gateway *process, projects *projectServers) error {
	for n := range projects.servers {
		name, address := fmt.Sprintf("project-%04d", n), projects.url(n, false)
		body := fmt.Sprintf(`{"name":%q,"url":%q}`, name, address)
		status, err := sendAs("", http.MethodPut, gateway.url()+"/api/gateway/projects/"+name, body, nil)
		if err == nil && status == http.StatusNotFound {
			status, err = sendAs("", http.MethodPost, gateway.url()+"/api/gateway/projects", body, nil)
		}
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%s could not be registered: status %d", name, status)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
