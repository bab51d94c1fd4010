//go:build stress

package stress

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

const (
	rightToken = "the-right-token-of-this-test"
	// descriptors is the gateway's limit of open files and sockets.
	descriptors = 256
)

// guarded starts a gateway that has an admin token and few descriptors.
func guarded(t *testing.T) *server {
	program, dir := build(t), t.TempDir()
	tokenFile := filepath.Join(dir, "token")
	if err := os.WriteFile(tokenFile, []byte(rightToken), 0o600); err != nil {
		t.Fatal(err)
	}
	g := newServer(t, "gateway", loopback(t, 1), "sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, descriptors),
		program, "gateway", "--data", filepath.Join(dir, "data"), "--admin-token-file", tokenFile)
	g.start()
	return g
}

// ask makes a request over a new connection and returns the status.
func ask(t *testing.T, url, token string) (int, error) {
	t.Helper()
	fresh := http.Client{Timeout: client.Timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := fresh.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}
