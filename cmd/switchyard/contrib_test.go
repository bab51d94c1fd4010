package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func contrib(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheImageIsBuiltFromAPinnedBaseAndChecksItsHealth(t *testing.T) {
	text := contrib(t, "contrib/Dockerfile")
	for _, from := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(text, -1) {
		if from[1] != "scratch" && !regexp.MustCompile(`:\d+\.\d+\.\d+-\w+(@sha256:[0-9a-f]{64})?$`).MatchString(from[1]) {
			t.Errorf("the base %s can become another image", from[1])
		}
	}
	if !strings.Contains(text, `CMD ["/switchyard", "health"]`) {
		t.Error("the image has no health check")
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(contrib(t, "go.mod"))
	if version == nil || !strings.Contains(text, "FROM golang:"+version[1]+".") {
		t.Errorf("the image is not built with the Go of go.mod, %v", version)
	}
}

// TestTheImageGetsNoSecretsAndNoWeight: "COPY . ." takes all that is not ignored.
func TestTheImageGetsNoSecretsAndNoWeight(t *testing.T) {
	ignored := "\n" + contrib(t, ".dockerignore")
	for _, line := range []string{".git", "bin", "node_modules", "**/*.db", "**/session.key", "**/credentials.json", "**/bot.toml"} {
		if !strings.Contains(ignored, "\n"+line+"\n") {
			t.Errorf(".dockerignore lacks %s", line)
		}
	}
}

func TestTheProxyAsksForHTTPSForLong(t *testing.T) {
	if text := contrib(t, "contrib/Caddyfile"); !regexp.MustCompile(`header Strict-Transport-Security "max-age=\d{8}`).MatchString(text) {
		t.Error("the Caddyfile sends no Strict-Transport-Security")
	}
}
